#include "nn/dropout.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/random.hpp"

namespace troupe::nn {

void dropout_mask(std::uint64_t seed, std::uint64_t lease, int node, double rate, core::Span out,
                  std::uint64_t first_unit) noexcept {
  const std::uint64_t index = lease << 16 | static_cast<std::uint64_t>(node);
  const auto threshold = static_cast<std::uint64_t>(std::ceil(rate * 0x1p32));  // exact: scaling by a power of two
  const auto kept = static_cast<float>(1.0 / (1.0 - rate));
  // Takes whole blocks of the stream that core::Random takes word by word; the test compares the two.
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  std::array<std::uint32_t, 4> counter{0, static_cast<std::uint32_t>(core::Purpose::dropout),
                                       static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)};
  counter[0] = static_cast<std::uint32_t>(first_unit / 4);
  auto word = static_cast<std::size_t>(first_unit % 4);  // the first block may begin before the first unit
  for (std::size_t unit = 0; unit < out.size(); ++counter[0], word = 0) {
    const auto words = core::philox(counter, key);
    const std::size_t count = std::min<std::size_t>(4 - word, out.size() - unit);
    for (std::size_t i = 0; i < count; ++i) out[unit + i] = words[word + i] >= threshold ? kept : 0.0f;
    unit += count;
  }
}

}  // namespace troupe::nn
