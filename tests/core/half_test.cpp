// 16-bit floats: all 65,536 values, the numbers between two of them, and the vector kernels against to_half.
#include "core/half.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/kernels_host.hpp"
#include "core/random.hpp"

namespace troupe::core {
namespace {

constexpr HalfKind kKinds[] = {HalfKind::fp16, HalfKind::bf16};
constexpr std::uint32_t kHalves = 65536;

/// The value of a 16-bit float, by the formats' definition.
double meaning(std::uint16_t half, HalfKind kind) {
  const int fraction_bits = kind == HalfKind::fp16 ? 10 : 7;
  const int exponent_bits = 15 - fraction_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = half >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = half & ((1 << fraction_bits) - 1);
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  const int hidden = exponent == 0 ? 0 : 1 << fraction_bits;
  return sign * std::ldexp(hidden + fraction, std::max(exponent, 1) - bias - fraction_bits);
}

TEST(Half, EveryValueMatchesItsFormat) {
  for (const HalfKind kind : kKinds)
    for (std::uint32_t bits = 0; bits < kHalves; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const double wanted = meaning(half, kind);
      const float value = from_half(half, kind);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(value));
        EXPECT_TRUE(std::isnan(meaning(to_half(value, kind), kind)));
      } else {
        ASSERT_EQ(value, static_cast<float>(wanted)) << bits;
        ASSERT_EQ(to_half(value, kind), half) << bits;
      }
    }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (const HalfKind kind : kKinds)
    for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
      const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
      const double a = meaning(low, kind);
      double b = meaning(high, kind);
      if (std::isnan(a) || std::isnan(b) || std::isinf(a)) continue;
      if (std::isinf(b)) b = 2 * a - meaning(static_cast<std::uint16_t>(bits - 1), kind);  // as if the range continued
      const auto middle = static_cast<float>((a + b) / 2);
      const auto even = low % 2 == 0 ? low : high;
      ASSERT_EQ(to_half(middle, kind), even) << bits;
      ASSERT_EQ(to_half(std::nextafter(middle, 0.0f), kind), low) << bits;
      ASSERT_EQ(to_half(std::nextafter(middle, INFINITY), kind), high) << bits;
      ASSERT_EQ(to_half(-middle, kind), even | 0x8000) << bits;
    }
}

TEST(Half, TooLargeNumbersBecomeInfinite) {
  EXPECT_EQ(to_half(1e6f, HalfKind::fp16), 0x7c00);
  EXPECT_EQ(to_half(-INFINITY, HalfKind::fp16), 0xfc00);
  EXPECT_EQ(to_half(std::numeric_limits<float>::max(), HalfKind::bf16), 0x7f80);
}

class HalfKernels : public ::testing::TestWithParam<HostVariant> {};
INSTANTIATE_TEST_SUITE_P(Host, HalfKernels, ::testing::ValuesIn(host_variants()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(HalfKernels, EqualToHalfBitForBit) {
  const Kernels& kernels = *GetParam().kernels;
  Random random(3, Purpose::test, 0);
  for (const HalfKind kind : kKinds)
    for (const std::size_t size : {0U, 1U, 7U, 16U, 31U, 33U, 4099U}) {
      std::vector<float> x(size), wide(size), sum(size, 0.5f);
      std::vector<std::uint16_t> half(size);
      for (float& value : x)
        value = std::bit_cast<float>(static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32)));
      kernels.narrow(half, x, kind);
      kernels.widen(wide, half, kind);
      kernels.add_wide(sum, half, kind);
      for (std::size_t i = 0; i < size; ++i) {
        if (std::isnan(x[i])) {
          EXPECT_TRUE(std::isnan(wide[i]));
          continue;
        }
        ASSERT_EQ(half[i], to_half(x[i], kind)) << x[i];
        ASSERT_EQ(wide[i], from_half(half[i], kind));
        ASSERT_EQ(sum[i], 0.5f + wide[i]);
      }
    }
}

TEST_P(HalfKernels, RefuseUnequalVectors) {
  std::vector<float> x(3);
  std::vector<std::uint16_t> half(4);
  EXPECT_THROW(GetParam().kernels->narrow(half, x, HalfKind::bf16), std::invalid_argument);
  EXPECT_THROW(GetParam().kernels->widen(x, half, HalfKind::fp16), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::core
