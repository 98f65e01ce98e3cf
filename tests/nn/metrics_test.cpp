#include "nn/metrics.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

TEST(RunningMetrics, MeansAreOverSamples) {
  RunningMetrics metrics(10);
  metrics.add({2.0, 3, 6, 8});
  metrics.add({1.0, 2, 2, 2});  // a short last batch
  EXPECT_EQ(metrics.samples(), 10);
  EXPECT_EQ(metrics.batches(), 2);
  EXPECT_DOUBLE_EQ(metrics.loss(), 1.8);  // (8 · 2 + 2 · 1) / 10
  EXPECT_DOUBLE_EQ(metrics.top1(), 0.5);
  EXPECT_DOUBLE_EQ(metrics.top5().value(), 0.8);
}

TEST(RunningMetrics, MergingEqualsAdding) {
  RunningMetrics left(10);
  RunningMetrics right(10);
  left.add({2.0, 3, 6, 8});
  right.add({1.0, 2, 2, 2});
  left.add(right);
  EXPECT_EQ(left.samples(), 10);
  EXPECT_EQ(left.batches(), 2);
  EXPECT_DOUBLE_EQ(left.loss(), 1.8);
  EXPECT_DOUBLE_EQ(left.top1(), 0.5);
  EXPECT_DOUBLE_EQ(left.top5().value(), 0.8);
}

TEST(RunningMetrics, AreZeroWhenEmptyAndAfterReset) {
  RunningMetrics metrics(10);
  EXPECT_EQ(metrics.loss(), 0);
  EXPECT_EQ(metrics.top1(), 0);
  metrics.add({2.0, 3, 6, 8});
  metrics.reset();
  EXPECT_EQ(metrics.samples(), 0);
  EXPECT_EQ(metrics.loss(), 0);
  EXPECT_TRUE(metrics.top5().has_value());
}

TEST(RunningMetrics, NoTop5BelowFiveClasses) {
  RunningMetrics four(4);
  four.add({1.0, 1, 0, 2});
  EXPECT_FALSE(four.top5().has_value());
  RunningMetrics five(5);
  five.add({1.0, 1, 2, 2});
  EXPECT_EQ(five.top5(), 1.0);
}

TEST(RunningMetrics, ANonFiniteLossStays) {
  RunningMetrics metrics(10);
  metrics.add({1.0, 0, 0, 4});
  EXPECT_TRUE(metrics.finite());
  metrics.add({std::numeric_limits<double>::quiet_NaN(), 0, 0, 4});
  metrics.add({1.0, 0, 0, 4});
  EXPECT_FALSE(metrics.finite());
}

}  // namespace
}  // namespace troupe::nn
