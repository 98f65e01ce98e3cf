#include "experiment/sweep/importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "experiment/sweep/tpe.hpp"
#include "tests/experiment/sweep/spaces.hpp"

namespace troupe::sweep {
namespace {

/// 40 points whose loss is |a - 0.3| + 0.1 · choice, best first.
std::vector<Point> forty_points() {
  std::vector<Point> points;
  for (int i = 0; i < 40; ++i) points.push_back({(7 * i % 40 + 0.5) / 40, 3 * i % 7 < 3 ? 0.0 : 1.0});
  std::ranges::stable_sort(points, {}, [](const Point& p) { return std::abs(*p[0] - 0.3) + 0.1 * *p[1]; });
  return points;
}

/// Python: ridge regression (penalty 1, none for the constant) of k / 39 on √3 x, √5 (3 x² - 1) / 2 with x = 2 a - 1, and √2 ((same) - 1/2)
/// for each choice, by Gaussian elimination of the normal equations; sums of the squared coefficients, relative to their sum.
TEST(Importance, IsTheVarianceOfEachPartOfTheQuadraticModel) {
  const Space space({real("a", 0, 1), choice("b", {"1", "2"})});
  const auto parts = importance(space, forty_points());
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_NEAR(parts[0], 0.931729546196225, 1e-12);
  EXPECT_NEAR(parts[1], 0.068270453803775, 1e-12);
}

TEST(Importance, WhatDecidesNothingHasAlmostNone) {
  const Space space({real("lr", 0.001, 1, true), integer("tau", 1, 64, true), real("noise", 0, 1)});
  core::Random random(5, core::Purpose::test, 0);
  std::vector<Point> points;
  for (int i = 0; i < 200; ++i) points.push_back(space.random(random));
  std::ranges::sort(points, {}, [](const Point& p) {
    return std::pow(std::log10(*p[0] / 0.05), 2) + 0.3 * std::pow(std::log(*p[1] / 8), 2);
  });
  const auto parts = importance(space, points);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), 1, 1e-12);
  EXPECT_GT(parts[0], parts[1]);
  EXPECT_GT(parts[1], 0.1);
  EXPECT_LT(parts[2], 0.02);
}

/// Points of a sweep lie where earlier ones were good: that must not make a parameter important that decides nothing, nor hide one.
TEST(Importance, HoldsForThePointsThatTpeChooses) {
  const Space space({real("lr", 0.001, 1, true), real("noise", 0, 1), choice("s", {"1", "2", "3"})});
  std::vector<double> sums(3);
  constexpr int kSweeps = 10;
  for (std::uint64_t seed = 1; seed <= kSweeps; ++seed) {
    std::vector<Point> ranked;
    const auto loss = [](const Point& p) { return std::pow(std::log10(*p[0] / 0.05) / 3, 2) + (*p[2] == 0 ? 0 : 0.3); };
    for (std::uint64_t i = 0; i < 30; ++i) {
      ranked.push_back(suggest(space, {ranked, {}}, {}, seed, i));
      std::ranges::stable_sort(ranked, {}, loss);
    }
    const auto parts = importance(space, ranked);
    for (std::size_t i = 0; i < 3; ++i) sums[i] += parts[i] / kSweeps;
  }
  EXPECT_GT(sums[2], sums[0]) << "the choice decides most";
  EXPECT_GT(sums[0], 0.2);
  EXPECT_LT(sums[1], 0.1);
}

TEST(Importance, AParameterOfOneChoiceIsJudgedByThePointsThatHaveIt) {
  const auto space = conditional_space();
  core::Random random(5, core::Purpose::test, 0);
  std::vector<Point> points;
  for (int i = 0; i < 100; ++i) points.push_back(space.random(random));
  std::ranges::sort(points, {}, [](const Point& p) { return p[2] ? std::abs(std::log(*p[2] / 16)) : 10; });
  const auto parts = importance(space, points);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_GT(parts[1], parts[0]) << "easgd is always better";
  EXPECT_GT(parts[2], parts[0]) << "and of it tau near 16 is the best";
}

TEST(Importance, AFewPointsSayNothing) {
  const Space space({real("a", 0, 1)});
  EXPECT_TRUE(importance(space, std::vector<Point>(7, Point{0.5})).empty());
  EXPECT_EQ(importance(space, std::vector<Point>(8, Point{0.5})).size(), 1U);
}

}  // namespace
}  // namespace troupe::sweep
