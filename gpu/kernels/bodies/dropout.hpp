/// Element body of dropout: the CPU's bits (nn/dropout.hpp), in which units are counted in plain order, [sample, channel, row, column]. An
/// index is a group of channels of a pixel. In images each element needs a block of Philox of its own; in vectors four share one. Thread
/// rule: plain values.
#pragma once

#include "gpu/kernels/bodies/groups.hpp"
#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {

struct PhiloxWords {
  std::uint32_t w[4];
};

/// As core::philox.
[[nodiscard]] TROUPE_HOST_DEVICE inline PhiloxWords philox_block(PhiloxWords counter, std::uint32_t key0,
                                                                 std::uint32_t key1) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
  TROUPE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter.w[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter.w[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.w[1] ^ key0, static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.w[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

template <class T, int kLanes>
struct DropoutBody {
  const T* x;
  T* y;
  const DropoutKey* key;
  std::uint64_t seed;
  std::uint64_t node;
  std::uint32_t purpose;    // core::Purpose::dropout
  std::uint64_t threshold;  // ⌈rate · 2^32⌉: a unit is kept if its word is at least this
  float kept;               // 1 / (1 − rate)
  Divider plane;            // pixels of an image
  std::int64_t channels;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const auto [sample, at] = plane(pixel);
    const DropoutKey now = *key;
    const std::uint64_t stream = now.lease << 16 | node;
    const auto first =
        static_cast<std::uint64_t>((now.first + sample) * channels * plane.divisor() + channel * plane.divisor() + at);
    auto lanes = load<kLanes>(x + pixel * channels + channel);
    PhiloxWords words{};
    std::uint64_t known = ~std::uint64_t{0};  // the block in `words`
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      const std::uint64_t unit = first + static_cast<std::uint64_t>(l * plane.divisor());
      if (unit / 4 != known) {
        known = unit / 4;
        words = philox_block({{static_cast<std::uint32_t>(known), purpose, static_cast<std::uint32_t>(stream),
                               static_cast<std::uint32_t>(stream >> 32)}},
                             static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
      }
      const auto word = static_cast<int>(unit % 4);  // no index: an array that is indexed would not stay in registers
      const std::uint32_t drawn = word == 0 ? words.w[0] : word == 1 ? words.w[1] : word == 2 ? words.w[2] : words.w[3];
      lanes[l] = lanes[l] * (drawn >= threshold ? kept : 0.0f);
    }
    store(y + pixel * channels + channel, lanes);
  }
};

}  // namespace troupe::gpu
