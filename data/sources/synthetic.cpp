#include "data/sources/synthetic.hpp"

#include <array>

#include <fmt/format.h>

#include "core/random.hpp"

namespace troupe::data {
namespace {

constexpr std::size_t kFields = 8;     // along a side of a pattern
constexpr std::uint32_t kLevel = 127;  // of a pattern: 64 … 191
constexpr std::uint32_t kPatternLow = 64;
constexpr std::uint64_t kPatterns = 1ULL << 62;  // streams of patterns; those of noise are below
constexpr std::uint64_t kTestNoise = 1ULL << 61;

/// Noise of 0 … 63 per pixel, four from a word of 32 bits.
class Noise {
 public:
  Noise(std::uint64_t seed, std::uint64_t stream) : random_(seed, core::Purpose::glyphs, stream) {}
  std::uint32_t next() noexcept {
    if (left_ == 0) {
      bits_ = random_.bits();
      left_ = 4;
    }
    --left_;
    const std::uint32_t value = bits_ & 63u;
    bits_ >>= 8;
    return value;
  }

 private:
  core::Random random_;
  std::uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace

core::Result<std::int32_t> SyntheticImages::label(std::int64_t index) const {
  return static_cast<std::int32_t>(index % options_.classes);
}

core::Result<std::int32_t> SyntheticImages::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  const auto channels = static_cast<std::size_t>(options_.shape[0]),
             height = static_cast<std::size_t>(options_.shape[1]), width = static_cast<std::size_t>(options_.shape[2]);
  const auto label = static_cast<std::int32_t>(index % options_.classes);
  bytes.resize(channels * height * width);
  core::Random pattern(options_.seed, core::Purpose::glyphs, kPatterns | static_cast<std::uint64_t>(label));
  Noise noise(options_.seed, static_cast<std::uint64_t>(index) | (options_.train ? 0 : kTestNoise));
  std::uint8_t* out = bytes.data();
  for (std::size_t c = 0; c < channels; ++c) {
    std::array<std::uint32_t, kFields * kFields> fields{};
    for (auto& field : fields) field = kPatternLow + static_cast<std::uint32_t>(pattern.below(kLevel + 1));
    for (std::size_t y = 0; y < height; ++y) {
      const std::uint32_t* const row = fields.data() + y * kFields / height * kFields;
      for (std::size_t x = 0; x < width; ++x)
        *out++ = static_cast<std::uint8_t>(row[x * kFields / width] + noise.next());
    }
  }
  return label;
}

std::string SyntheticImages::where(std::int64_t index) const { return fmt::format("synthetic sample {}", index); }

}  // namespace troupe::data
