#include "data/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <xxhash.h>

namespace troupe::data {

namespace {

constexpr std::int64_t kSamples = 1000;

core::Result<std::uint64_t> fingerprint_of(const Dataset& data, std::uint64_t seed) {
  const auto shape = data.shape();
  const std::array<std::int64_t, 5> facts{data.size(), shape.channels, shape.height, shape.width, data.classes()};
  std::uint64_t hash = XXH3_64bits_withSeed(facts.data(), sizeof(facts), seed);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.size()));
  const auto samples = std::min(kSamples, data.size());
  for (std::int64_t k = 0; k < samples; ++k) {
    const auto label = data.read(k * data.size() / samples, pixels);
    if (!label) return tl::unexpected(label.error());
    hash = XXH3_64bits_withSeed(pixels.data(), pixels.size(), hash + static_cast<std::uint64_t>(*label));
  }
  return hash;
}

}  // namespace

core::Result<std::uint64_t> fingerprint(const Source& source) {
  return fingerprint_of(source.train->dataset(), 0).and_then([&](std::uint64_t hash) {
    return fingerprint_of(source.test->dataset(), hash);
  });
}

}  // namespace troupe::data
