#include "experiment/sweep/importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

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

/// Python: p of the best 4 and q of all 40, each (sum over its points of truncated Gaussians of deviation 0.2 n^(-1/5), at least 1/min(100,
/// n + 2), + the prior's) / (n + 1), and ∑ (p / q - 1)² q / 20000 at 20000 midpoints; for the choice (sum of ((same) + w) / (1 + 2 w) + 1/2) /
/// (n + 1), w = 1 / (n + 1). Relative to their sum.
TEST(Importance, IsThePearsonDivergenceOfTheBestFromAll) {
  const Space space({real("a", 0, 1), choice("b", {"1", "2"})});
  const auto parts = importance(space, forty_points());
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_NEAR(parts[0], 0.7312639912455479, 1e-4);
  EXPECT_NEAR(parts[1], 0.26873600875445214, 1e-4);
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
  EXPECT_GT(parts[0], 0.3);
  EXPECT_GT(parts[1], 0.1);
  EXPECT_LT(parts[2], 0.1);
}

TEST(Importance, AParameterOfOneChoiceIsJudgedByThePointsThatHaveIt) {
  const auto space = conditional_space();
  core::Random random(5, core::Purpose::test, 0);
  std::vector<Point> points;
  for (int i = 0; i < 100; ++i) points.push_back(space.random(random));
  std::ranges::sort(points, {}, [](const Point& p) { return p[2] ? std::abs(std::log(*p[2] / 16)) : 10; });
  const auto parts = importance(space, points);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_GT(parts[1], parts[0]) << "only easgd is among the best";
  EXPECT_GT(parts[2], parts[0]) << "and of it tau near 16";
}

TEST(Importance, AFewPointsSayNothing) {
  const Space space({real("a", 0, 1)});
  EXPECT_TRUE(importance(space, std::vector<Point>(7, Point{0.5})).empty());
  EXPECT_EQ(importance(space, std::vector<Point>(8, Point{0.5})).size(), 1U);
}

}  // namespace
}  // namespace troupe::sweep
