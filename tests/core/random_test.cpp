#include "core/random.hpp"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace troupe::core {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers of Random123's kat_vectors for philox4x32 with 10 rounds: zeros, ones, and digits of pi.
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The mapping of (seed, purpose, index) to key and counter is part of reproducibility: saved runs depend on it.
TEST(Random, IsPhiloxOverBlockPurposeAndIndexKeyedBySeed) {
  Random random(0x1122334455667788, Purpose::dropout, 0x99aabbccddeeff00);
  const std::array<std::uint32_t, 2> key = {0x55667788, 0x11223344};
  for (std::uint32_t block = 0; block < 3; ++block)
    for (const std::uint32_t word : philox({block, 4, 0xddeeff00, 0x99aabbcc}, key)) ASSERT_EQ(random.bits(), word);
}

TEST(Random, StreamsOfDifferentSeedPurposeOrIndexDiffer) {
  std::set<std::uint32_t> firsts;
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32})
    for (const Purpose purpose : {Purpose::initialise, Purpose::shuffle, Purpose::augment})
      for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40})
        firsts.insert(Random(seed, purpose, index).bits());
  EXPECT_EQ(firsts.size(), 27u);
}

TEST(Random, ACopyGoesOnAtTheSamePlace) {
  Random random(7, Purpose::test, 0);
  for (int i = 0; i < 5; ++i) (void)random.bits();  // into the second block
  Random copy = random;
  for (int i = 0; i < 9; ++i) ASSERT_EQ(copy.bits(), random());
}

// Two words make one number: the second word has the high bits; the 53 highest bits are used.
TEST(Random, UniformIsTheHighest53Bits) {
  Random bits(3, Purpose::test, 1);
  Random uniform = bits;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t low = bits.bits();
    const std::uint64_t whole = low | std::uint64_t{bits.bits()} << 32;
    ASSERT_EQ(uniform.uniform(), std::ldexp(static_cast<double>(whole >> 11), -53));
  }
}

TEST(Random, UniformStaysInsideItsInterval) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed, std::uint32_t index) {
    Random random(seed, Purpose::test, index);
    for (int i = 0; i < 20; ++i) {
      const double u = random.uniform();
      RC_ASSERT(u >= 0.0 && u < 1.0);
      // Between these two neighbours every product rounds to one of them; the upper one is excluded.
      RC_ASSERT(random.uniform(1.0, std::nextafter(1.0, 2.0)) == 1.0);
    }
  }));
}

TEST(Random, BelowStaysBelow) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed, Purpose::test, 0);
    const auto bound = *rc::gen::suchThat<std::uint64_t>([](std::uint64_t b) { return b > 0; });
    for (int i = 0; i < 20; ++i) RC_ASSERT(random.below(bound) < bound);
    RC_ASSERT(random.below(1) == 0);
    RC_ASSERT(random.below(~std::uint64_t{0}) < ~std::uint64_t{0});
  }));
}

// With a bound of 3·2^62 a modulo of 64-bit words would make a third of all results twice as likely. 3,000 draws expect
// 1,000 ± 26 in each third; 8 deviations are allowed, a modulo would be 19 away. The seed is fixed, so this is exact.
TEST(Random, BelowIsUnbiased) {
  Random random(11, Purpose::test, 0);
  constexpr std::uint64_t kThird = std::uint64_t{1} << 62;
  std::array<int, 3> counts{};
  for (int i = 0; i < 3000; ++i) ++counts[random.below(3 * kThird) / kThird];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 206);
}

// 200,000 draws: the mean has a standard error of 0.0022, the variance of 0.0032, the fourth moment of 0.022.
TEST(Random, NormalHasTheMomentsOfANormal) {
  Random random(5, Purpose::test, 0);
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.015);
  EXPECT_NEAR(fourths / kDraws, 3.0, 0.1);
}

TEST(Random, NormalTakesTwoUniforms) {
  Random uniform(9, Purpose::test, 2);
  Random normal = uniform;
  const double u = uniform.uniform();
  const double v = uniform.uniform();
  EXPECT_NEAR(normal.normal(), std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::acos(-1.0) * v), 1e-12);
  EXPECT_EQ(normal.bits(), uniform.bits());
}

}  // namespace
}  // namespace troupe::core
