// The arithmetic of every kernel on numbers computed by hand, for every instruction set of this CPU. All values are exact
// in float32, so equality is exact.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/kernels_host.hpp"

namespace troupe::core {
namespace {

using Floats = std::vector<float>;

class KernelsGolden : public ::testing::TestWithParam<HostVariant> {
 protected:
  const Kernels& k = *GetParam().kernels;
};

INSTANTIATE_TEST_SUITE_P(Host, KernelsGolden, ::testing::ValuesIn(host_variants()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(KernelsGolden, FillCopyAndScaleMatchValuesByHand) {
  Floats y(3);
  k.fill(y, 2.5f);
  EXPECT_EQ(y, (Floats{2.5f, 2.5f, 2.5f}));
  k.copy(y, Floats{1, 2, 3});
  EXPECT_EQ(y, (Floats{1, 2, 3}));
  k.scale(y, -2);
  EXPECT_EQ(y, (Floats{-2, -4, -6}));
}

TEST_P(KernelsGolden, AxpyAddsAMultiple) {
  Floats y = {1, 2, 3};
  k.axpy(y, 0.5f, Floats{2, -4, 8});  // 1 + 1, 2 − 2, 3 + 4
  EXPECT_EQ(y, (Floats{2, 0, 7}));
}

TEST_P(KernelsGolden, ScaleAddMixes) {
  Floats y = {1, 2, 3};
  k.scale_add(y, 0.25f, 0.75f, Floats{4, 8, 12});  // 0.25 + 3, 0.5 + 6, 0.75 + 9
  EXPECT_EQ(y, (Floats{3.25f, 6.5f, 9.75f}));
}

TEST_P(KernelsGolden, DifferenceMayOverwriteEitherOperand) {
  const Floats a = {5, 7, -1};
  const Floats b = {2, 10, -1};
  Floats y(3);
  k.difference(y, a, b);
  EXPECT_EQ(y, (Floats{3, -3, 0}));
  Floats over_a = a;
  k.difference(over_a, over_a, b);
  EXPECT_EQ(over_a, y);
  Floats over_b = b;
  k.difference(over_b, a, over_b);
  EXPECT_EQ(over_b, y);
}

// d = x − c = (4, −2): x ← x − 0.5 d = (8 − 2, 0 + 1); c ← c + 0.25 d = (4 + 1, 2 − 0.5).
TEST_P(KernelsGolden, ElasticPairMovesBothFromTheirOldValues) {
  Floats x = {8, 0};
  Floats center = {4, 2};
  k.elastic_pair(x, center, 0.5f, 0.25f);
  EXPECT_EQ(x, (Floats{6, 1}));
  EXPECT_EQ(center, (Floats{5, 1.5f}));
}

// The same numbers, but x receives the later subtraction from the worker: 0.5 d = (2, −1).
TEST_P(KernelsGolden, ElasticDeltaLeavesTheWorkersMove) {
  Floats x = {8, 0};
  Floats center = {4, 2};
  k.elastic_delta(x, center, 0.5f, 0.25f);
  EXPECT_EQ(x, (Floats{2, -1}));
  EXPECT_EQ(center, (Floats{5, 1.5f}));
}

TEST_P(KernelsGolden, ReduceAllGivesEveryVectorTheScaledSum) {
  Floats a = {1, 2};
  Floats b = {3, -2};
  Floats c = {4, 6};
  const std::vector<Span> all = {a, b, c};
  k.reduce_all(all, 0.5f);  // (8, 6) / 2
  for (const Span& vector : all) EXPECT_EQ(Floats(vector.begin(), vector.end()), (Floats{4, 3}));
}

// (1 + 2^24) rounds to 2^24 in float32 (a tie, to even), so the order of the sum is visible: from the left
// (1 + 2^24) − 2^24 = 0, whereas 1 + (2^24 − 2^24) = 1.
TEST_P(KernelsGolden, ReduceAllSumsFromTheLeft) {
  constexpr float kBig = 16'777'216;
  Floats a = {1}, b = {kBig}, c = {-kBig};
  k.reduce_all(std::vector<Span>{a, b, c}, 1);
  EXPECT_EQ(a[0], 0);
  a = {1}, b = {kBig}, c = {-kBig};
  k.reduce_all(std::vector<Span>{b, c, a}, 1);
  EXPECT_EQ(a[0], 1);
}

TEST_P(KernelsGolden, ReduceOfOneVectorScalesIt) {
  Floats a = {3, 5};
  k.reduce_all(std::vector<Span>{a}, 2);
  EXPECT_EQ(a, (Floats{6, 10}));
}

TEST_P(KernelsGolden, BroadcastCopiesTheRoot) {
  Floats a = {1, 2}, b = {3, 4}, c = {5, 6};
  k.broadcast_all(std::vector<Span>{a, b, c}, 1);
  EXPECT_EQ(a, (Floats{3, 4}));
  EXPECT_EQ(b, (Floats{3, 4}));
  EXPECT_EQ(c, (Floats{3, 4}));
}

// g' = 3 + 0.5 · 2 = 4; x ← 2 − 0.25 · 4 = 1.
TEST_P(KernelsGolden, SgdStepMatchesValuesByHand) {
  const OptimizerStep step{OptimizerKind::sgd, 0.25f, 0, 0.5f};
  Floats x = {2};
  k.optimize(x, Floats{3}, {}, step);
  EXPECT_EQ(x, Floats{1});
  Floats g = {3};
  k.optimize_delta(Floats{2}, g, {}, step);
  EXPECT_EQ(g, Floats{-1});
}

// g' = 4; v ← 0.5 · 6 − 0.25 · 4 = 2; x ← 2 + 2 = 4. A second step with the same g: g' = 3 + 0.5 · 4 = 5;
// v ← 0.5 · 2 − 0.25 · 5 = −0.25; x ← 3.75.
TEST_P(KernelsGolden, MomentumStepsMatchValuesByHand) {
  const OptimizerStep step{OptimizerKind::momentum, 0.25f, 0.5f, 0.5f};
  Floats x = {2}, v = {6}, g = {3};
  k.optimize(x, g, Span(v), step);
  EXPECT_EQ(v, Floats{2});
  EXPECT_EQ(x, Floats{4});
  k.optimize(x, g, Span(v), step);
  EXPECT_EQ(v, Floats{-0.25f});
  EXPECT_EQ(x, Floats{3.75f});
  v = {6};
  k.optimize_delta(Floats{2}, g, Span(v), step);
  EXPECT_EQ(v, Floats{2});
  EXPECT_EQ(g, Floats{2});
}

// g' = 4; v ← 2; x ← 2 + 0.5 · 2 − 0.25 · 4 = 2. (From v = 10: v ← 4, x ← 2 + 2 − 1 = 3.)
TEST_P(KernelsGolden, NesterovStepsMatchValuesByHand) {
  const OptimizerStep step{OptimizerKind::nesterov, 0.25f, 0.5f, 0.5f};
  Floats x = {2, 2}, v = {6, 10}, g = {3, 3};
  k.optimize(x, g, Span(v), step);
  EXPECT_EQ(v, (Floats{2, 4}));
  EXPECT_EQ(x, (Floats{2, 3}));
  v = {6, 10};
  k.optimize_delta(Floats{2, 2}, g, Span(v), step);
  EXPECT_EQ(v, (Floats{2, 4}));
  EXPECT_EQ(g, (Floats{0, 1}));
}

// Nesterov's look-ahead form equals the two-variable form of Sutskever et al. on y = x̂ + μ v:
//   v' = μ v − lr ∇(y);  x̂' = x̂ + v'.   With ∇ = 4 throughout, μ = lr = 0.5, from x̂ = 1, v = 2 (y = 2):
//   v' = 1 − 2 = −1, x̂' = 0, y' = −0.5;   v'' = −0.5 − 2 = −2.5, x̂'' = −2.5, y'' = −3.75.
TEST_P(KernelsGolden, NesterovFollowsTheLookAheadPoint) {
  const OptimizerStep step{OptimizerKind::nesterov, 0.5f, 0.5f, 0};
  Floats y = {2}, v = {2};
  k.optimize(y, Floats{4}, Span(v), step);
  EXPECT_EQ(y, Floats{-0.5f});
  k.optimize(y, Floats{4}, Span(v), step);
  EXPECT_EQ(v, Floats{-2.5f});
  EXPECT_EQ(y, Floats{-3.75f});
}

TEST_P(KernelsGolden, SquaredNormSumsInDouble) {
  EXPECT_EQ(k.squared_norm(Floats{}), 0.0);
  EXPECT_EQ(k.squared_norm(Floats{3, -4}), 25.0);
  // 2^24 + 1 is lost in float32 and kept in float64; so is (2^70)², which overflows float32.
  EXPECT_EQ(k.squared_norm(Floats{4096, 1}), 16'777'217.0);
  EXPECT_EQ(k.squared_norm(Floats{0x1p70f}), 0x1p140);
  // Integers up to 10,000: n (n + 1) (2 n + 1) / 6 = 333,383,335,000, exact in any order, over several chunks.
  Floats integers;
  for (int i = 1; i <= 10'000; ++i) integers.push_back(static_cast<float>(i));
  EXPECT_EQ(k.squared_norm(integers), 333'383'335'000.0);
}

TEST_P(KernelsGolden, AllFiniteFindsOneBadValueAnywhere) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_TRUE(k.all_finite(Floats{}));
  EXPECT_TRUE(k.all_finite(Floats{kLargest, -kLargest, std::numeric_limits<float>::denorm_min(), -0.0f}));
  Floats x(2100, kLargest);  // more than two chunks, with a tail
  EXPECT_TRUE(k.all_finite(x));
  for (std::size_t i = 0; i < x.size(); i += 13) {
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      x[i] = bad;
      ASSERT_FALSE(k.all_finite(x)) << i;
    }
    x[i] = 0;
  }
  EXPECT_FALSE(k.all_finite(Floats{1, std::numeric_limits<float>::infinity()}));
}

TEST_P(KernelsGolden, AllWithinFindsOneLargerValueAnywhere) {
  EXPECT_TRUE(k.all_within(Floats{}, 0));
  EXPECT_TRUE(k.all_within(Floats{1, -1, 0.5F, -0.0f, std::numeric_limits<float>::denorm_min()}, 1));
  EXPECT_TRUE(k.all_within(Floats{std::numeric_limits<float>::max()}, std::numeric_limits<float>::max()));
  Floats x(2100, -kLargestUsable);  // more than two chunks, with a tail
  EXPECT_TRUE(k.all_within(x, kLargestUsable));
  const float next = std::nextafter(kLargestUsable, std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < x.size(); i += 13) {
    for (const float bad :
         {next, -next, 1e38f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      x[i] = bad;
      ASSERT_FALSE(k.all_within(x, kLargestUsable)) << i << ": " << bad;
    }
    x[i] = 0;
  }
  // A larger number hides no NaN before or after it.
  for (const auto& pair :
       {Floats{std::numeric_limits<float>::quiet_NaN(), 5}, Floats{5, std::numeric_limits<float>::quiet_NaN()}}) {
    Floats many(64, 0);
    std::copy(pair.begin(), pair.end(), many.begin());
    EXPECT_FALSE(k.all_within(many, 10));
    std::copy(pair.begin(), pair.end(), many.begin() + 16);
    EXPECT_FALSE(k.all_within(many, 10));
  }
}

// r = 0.75 · 20 + 0.25 · 2² = 16; Δ = −0.5 · 2 / (4 + 0) = −0.25.
TEST_P(KernelsGolden, RmspropDividesByTheRootOfTheMeanOfSquares) {
  const OptimizerStep step{.kind = OptimizerKind::rmsprop, .lr = 0.5f, .decay = 0.75f, .epsilon = 0};
  Floats x = {1};
  Floats r = {20};
  k.optimize(x, Floats{2}, Span(r), step);
  EXPECT_EQ(r, (Floats{16}));
  EXPECT_EQ(x, (Floats{0.75f}));
}

// r = 12 + 2² = 16; Δ = −0.5 · 2 / (4 + 4) = −0.125.
TEST_P(KernelsGolden, AdagradDividesByTheRootOfTheSumOfSquares) {
  const OptimizerStep step{.kind = OptimizerKind::adagrad, .lr = 0.5f, .epsilon = 4};
  Floats x = {1};
  Floats r = {12};
  k.optimize(x, Floats{2}, Span(r), step);
  EXPECT_EQ(r, (Floats{16}));
  EXPECT_EQ(x, (Floats{0.875f}));
}

// First step from zero state: m̂ = g and r̂ = g² whatever the rates, so Δ = −lr sign(g). Second step, g = 4 after 4:
// m = 0.5 · 2 + 0.5 · 4 = 3, m̂ = 3 / 0.75 = 4; r = 0.75 · 4 + 0.25 · 16 = 7, r̂ = 7 / (1 − 0.75²) = 16; Δ = −lr · 4 / 4.
TEST_P(KernelsGolden, AdamCorrectsItsBias) {
  OptimizerStep step{.kind = OptimizerKind::adam, .lr = 0.5f, .momentum = 0.5f, .decay = 0.75f, .epsilon = 0};
  Floats x = {1, 1};
  Floats m(2);
  Floats r(2);
  k.optimize(x, Floats{4, -4}, {m, r}, step);
  EXPECT_EQ(x, (Floats{0.5f, 1.5f}));
  EXPECT_EQ(m, (Floats{2, -2}));
  EXPECT_EQ(r, (Floats{4, 4}));
  step.t = 2;
  k.optimize(x, Floats{4, -4}, {m, r}, step);
  EXPECT_EQ(m, (Floats{3, -3}));
  EXPECT_EQ(r, (Floats{7, 7}));
  EXPECT_NEAR(x[0], 0, 1e-6);  // 1 − 0.75² is exact, its inverse is not
  EXPECT_NEAR(x[1], 2, 1e-6);
}

TEST_P(KernelsGolden, ClipLimitsElementsThenTheNorm) {
  Floats g = {3, -5, 0.5f};
  clip(k, g, 4, 0);
  EXPECT_EQ(g, (Floats{3, -4, 0.5f}));
  Floats h = {3, -4};
  clip(k, h, 0, 2.5f);  // ‖h‖ = 5
  EXPECT_EQ(h, (Floats{1.5f, -2}));
  clip(k, h, 0, 2.5f);  // at the limit: unchanged
  EXPECT_EQ(h, (Floats{1.5f, -2}));
  Floats both = {30, -40};
  clip(k, both, 4, 5);  // (4, −4), norm √32
  EXPECT_NEAR(both[0], 4 * 5 / std::sqrt(32.0), 1e-6);
  EXPECT_EQ(both[0], -both[1]);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  Floats bad(20, nan);
  clip(k, bad, 1, 0);
  for (const float element : bad) EXPECT_TRUE(std::isnan(element));
  bad = {infinite, 1};
  clip(k, bad, 0, 1);  // a divergence stays visible
  EXPECT_EQ(bad, (Floats{infinite, 1}));
}

}  // namespace
}  // namespace troupe::core
