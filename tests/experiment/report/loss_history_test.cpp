#include "experiment/report/loss_history.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace troupe::report {
namespace {

TEST(LossHistoryTest, MeansAreOverEqualParts) {
  LossHistory losses;
  for (const double loss : {4.0, 2.0, 1.0, 1.0}) losses.add(loss, 10);
  EXPECT_EQ(losses.means(2), (std::vector<double>{3, 1}));
  EXPECT_EQ(losses.means(100), (std::vector<double>{4, 2, 1, 1})) << "not more than there are";
}

TEST(LossHistoryTest, StaysBoundedAndKeepsTheWholeRun) {
  LossHistory losses;
  constexpr int kReports = 100'000;
  for (int i = 0; i < kReports; ++i) losses.add(1.0 - static_cast<double>(i) / kReports, 64);
  EXPECT_LE(losses.points(), LossHistory::kMostPoints);
  const auto means = losses.means(4);
  ASSERT_EQ(means.size(), 4u);
  for (std::size_t part = 0; part < 4; ++part)  // a line from 1 to 0: 7/8, 5/8, 3/8, 1/8
    EXPECT_NEAR(means[part], (7.0 - 2.0 * static_cast<double>(part)) / 8, 0.02);
}

TEST(LossHistoryTest, WhatIsNotFiniteIsLeftOut) {
  LossHistory losses;
  losses.add(std::numeric_limits<double>::infinity(), 1);
  losses.add(std::nan(""), 1);
  losses.add(1, 0);
  EXPECT_EQ(losses.points(), 0u);
}

TEST(SparklineTest, GoesFromTheLowestToTheHighest) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, false), "_.:-=+*#");
  EXPECT_EQ(sparkline({7, 0}, true), "█▁");
  EXPECT_EQ(sparkline({3, 3}, false), "__");
  EXPECT_EQ(sparkline({}, false), "");
}

}  // namespace
}  // namespace troupe::report
