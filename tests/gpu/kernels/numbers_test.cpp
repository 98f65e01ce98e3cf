#include "gpu/kernels/bodies/numbers.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/half.hpp"
#include "core/random.hpp"
#include "gpu/kernels/bodies/functions.hpp"

namespace troupe::gpu {
namespace {

template <class Half>
void expect_all_halves_widen(core::HalfKind kind) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float expected = core::from_half(half, kind);
    const float found = to_float(Half{half});
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(found)) << bits;
    else
      ASSERT_EQ(bits_of(found), bits_of(expected)) << bits;
  }
}

template <class Half>
void expect_rounding(core::HalfKind kind, std::uint32_t bits) {
  const float value = as_float(bits);
  const Half found = rounded<Half>(value);
  if (std::isnan(value))
    ASSERT_TRUE(std::isnan(to_float(found))) << bits;
  else
    ASSERT_EQ(found.bits, core::to_half(value, kind)) << bits;
}

TEST(Numbers, EveryHalfWidensAsInCore) {
  expect_all_halves_widen<Bf16>(core::HalfKind::bf16);
  expect_all_halves_widen<Fp16>(core::HalfKind::fp16);
}

/// Each half, its neighbours in float32, and the ties between it and the next; and floats of any bits.
TEST(Numbers, FloatsRoundAsInCore) {
  for (std::uint32_t half = 0; half < 0x10000; ++half)
    for (const std::uint32_t tie : {0u, 0x1000u, 0x8000u})
      for (const int near : {-1, 0, 1}) {
        const auto offset = tie + static_cast<std::uint32_t>(near);
        expect_rounding<Bf16>(core::HalfKind::bf16, (half << 16) + offset);
        const auto wide = bits_of(core::from_half(static_cast<std::uint16_t>(half), core::HalfKind::fp16));
        expect_rounding<Fp16>(core::HalfKind::fp16, wide + offset);
      }
  core::Random random(1, core::Purpose::test, 0);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t bits = random.bits();
    expect_rounding<Bf16>(core::HalfKind::bf16, bits);
    expect_rounding<Fp16>(core::HalfKind::fp16, bits);
  }
}

template <class T, int kCount>
void expect_moves() {
  alignas(64) T from[kCount + 2];
  alignas(64) T to[kCount + 2];
  for (int i = 0; i < kCount + 2; ++i) {
    from[i] = rounded<T>(static_cast<float>(i) + 0.5f);
    to[i] = rounded<T>(-1.0f);
  }
  const auto lanes = load<kCount>(from);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(lanes[i], static_cast<float>(i) + 0.5f);
  store(to, lanes);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(to_float(to[i]), static_cast<float>(i) + 0.5f);
  ASSERT_EQ(to_float(to[kCount]), -1.0f);
}

TEST(Numbers, LanesMoveInOrder) {
  expect_moves<float, 1>();
  expect_moves<float, 4>();
  expect_moves<float, 8>();
  expect_moves<Bf16, 1>();
  expect_moves<Bf16, 4>();
  expect_moves<Bf16, 8>();
  expect_moves<Fp16, 4>();
  expect_moves<Fp16, 8>();
}

TEST(Numbers, DividerDividesAsTheProcessorDoes) {
  core::Random random(2, core::Purpose::test, 0);
  const auto check = [](std::int64_t n, std::int64_t d) {
    const auto parts = Divider(d)(n);
    ASSERT_EQ(parts.quotient, n / d) << n << " / " << d;
    ASSERT_EQ(parts.remainder, n % d) << n << " / " << d;
  };
  for (std::int64_t d = 1; d < 300; ++d)
    for (std::int64_t n = 0; n < 2000; ++n) check(n, d);
  for (int i = 0; i < 200'000; ++i) {
    const auto d = static_cast<std::int64_t>(1 + (random.bits() >> (1 + random.below(31))));
    const std::int64_t n = random.bits() >> 1;
    if (d < 0x7fffffff) check(n, d);
    check(n / d * d, d);                                      // the first of a quotient
    if (n / d > 0) check(n / d * d - 1, d);                   // the last
    check(static_cast<std::int64_t>(random.bits()) << 9, d);  // beyond 2^31
  }
  check(0x7fffffff, 0x7fffffff);
  check(0x7ffffffe, 0x7fffffff);
  check(0x7fffffff, 1);
  check(0x80000000, 3);
}

/// Relative errors against the library's functions in double.
TEST(Functions, AreAsExactAsTheirTypeAllows) {
  for (int i = -20'000; i <= 20'000; ++i) {
    const float x = static_cast<float>(i) * 0.001f;
    const double wide = x;
    ASSERT_NEAR(sigmoid(x), 1 / (1 + std::exp(-wide)), 3e-7 / (1 + std::exp(-wide))) << x;
    ASSERT_NEAR(hyperbolic_tangent(x), std::tanh(wide), 3e-7 * std::abs(std::tanh(wide))) << x;
    if (x <= 0) {
      ASSERT_NEAR(exp_negative(x), std::exp(wide), 2e-7 * std::exp(wide)) << x;
    }
  }
  for (int i = 1; i < 2000; ++i) {
    const float base = static_cast<float>(i) * 0.01f;
    for (const float exponent : {0.75f, 0.5f, 1.0f, 0.6f}) {
      const double expected = std::pow(static_cast<double>(base), -static_cast<double>(exponent));
      ASSERT_NEAR(negative_power(base, exponent), expected, 5e-7 * expected) << base << " to -" << exponent;
    }
  }
}

TEST(Functions, KeepNanAndEnds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(relu(nan)));
  EXPECT_TRUE(std::isnan(sigmoid(nan)));
  EXPECT_TRUE(std::isnan(hyperbolic_tangent(nan)));
  EXPECT_EQ(sigmoid(infinity), 1.0f);
  EXPECT_EQ(sigmoid(-infinity), 0.0f);
  EXPECT_EQ(hyperbolic_tangent(infinity), 1.0f);
  EXPECT_EQ(hyperbolic_tangent(-infinity), -1.0f);
  EXPECT_EQ(relu(-3.0f), 0.0f);
  EXPECT_FALSE(is_finite(nan) || is_finite(infinity) || is_finite(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(is_finite(std::numeric_limits<float>::max()) && is_finite(0.0));
}

}  // namespace
}  // namespace troupe::gpu
