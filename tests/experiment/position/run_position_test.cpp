#include "experiment/position/run_position.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

TEST(RunPositionTest, ALedgersPositionCountsWhatIsFinishedOfWhatTheEpochHas) {
  EXPECT_EQ(ledger_position(2, 100, 0, 25), 2.25);
  EXPECT_EQ(ledger_position(2, 100, 20, 80), 3) << "20 are no part of this epoch";
  EXPECT_FALSE(ledger_position(0, 0, 0, 0).has_value());
  EXPECT_FALSE(ledger_position(0, 100, 100, 0).has_value());
  EXPECT_FALSE(ledger_position(0, 100, 0, 101).has_value());
  EXPECT_FALSE(ledger_position(0, 100, 0, -1).has_value());
}

TEST(RunPositionTest, WithoutALedgerWhatWasComputedCounts) {
  RunPosition position;
  position.start(1.5, 100, 4);
  EXPECT_EQ(position.after(0), 1.5);
  EXPECT_EQ(position.after(50), 2);
  EXPECT_EQ(position.after(1000), 4) << "no run has more than its epochs";
  EXPECT_EQ(position.samples_per_epoch(), 100);
}

// A third of the samples is given up: 20 computed ones are 0.3 epochs.
TEST(RunPositionTest, StepsThatArePassedOverCountAsTheLedgerSays) {
  RunPosition position;
  position.start(0, 100, 4);
  position.learn(0.3, 20);
  EXPECT_DOUBLE_EQ(position.after(20), 0.3);
  EXPECT_DOUBLE_EQ(position.after(40), 0.6) << "it goes on at the pace so far";
}

// 128 samples are computed for an epoch of 100.
TEST(RunPositionTest, BatchesThatWrapAroundCountOnce) {
  RunPosition position;
  position.start(0, 100, 20);
  position.learn(10, 1280);
  EXPECT_DOUBLE_EQ(position.samples_per_epoch(), 128);
  EXPECT_DOUBLE_EQ(position.after(1408), 11);
}

TEST(RunPositionTest, ALateReportChangesNothing) {
  RunPosition position;
  position.start(0, 100, 4);
  position.learn(1.5, 150);
  position.learn(1, 100);
  EXPECT_DOUBLE_EQ(position.after(150), 1.5);
  EXPECT_DOUBLE_EQ(position.after(120), 1.5) << "reports that tell less than the ledger are late";
}

}  // namespace
}  // namespace troupe::experiment
