#include "experiment/accounts/silence_watch.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

/// Two workers with 5 leases each that have reported every 0.1 s, until `now`.
SilenceWatch both_until(double now) {
  SilenceWatch watch(2);
  for (const auto worker : {0U, 1U}) watch.granted(worker, 5, 0);
  for (double t = 0; t <= now; t += 0.1)
    for (const auto worker : {0U, 1U}) static_cast<void>(watch.heard(worker, 0, t));
  return watch;
}

TEST(SilenceWatch, OneThatStopsWhileAnotherReportsIsNoticedOnceUntilItIsHeard) {
  auto watch = both_until(1);
  static_cast<void>(watch.heard(0, 0, 2.5));
  EXPECT_TRUE(watch.look(2.6).empty()) << "1.6 s are not long enough";
  static_cast<void>(watch.heard(0, 0, 3.4));
  const auto silent = watch.look(3.5);
  ASSERT_EQ(silent.size(), 1U);
  EXPECT_EQ(silent[0].worker, 1U);
  EXPECT_NEAR(silent[0].for_s, 2.5, 0.11);
  EXPECT_TRUE(watch.look(3.6).empty());
  const auto ended = watch.heard(1, 0, 5);
  ASSERT_TRUE(ended);
  EXPECT_NEAR(*ended, 4, 0.11);
  EXPECT_FALSE(watch.heard(1, 0, 5.1));
}

TEST(SilenceWatch, WhenNobodyReportsNobodyIsSilent) {
  auto watch = both_until(1);
  EXPECT_TRUE(watch.look(60).empty()) << "all wait, for an evaluation or for each other";
}

TEST(SilenceWatch, LongStepsAreNoSilence) {
  SilenceWatch watch(2);
  for (const auto worker : {0U, 1U}) watch.granted(worker, 100, 0);
  for (const double t : {0, 5, 10, 15}) static_cast<void>(watch.heard(1, 0, t));
  for (double t = 0; t <= 60; t += 0.5) static_cast<void>(watch.heard(0, 0, t));
  EXPECT_TRUE(watch.look(60).empty()) << "45 s, after pauses of 5 s";
  static_cast<void>(watch.heard(0, 0, 66));
  EXPECT_EQ(watch.look(66).size(), 1U);
}

TEST(SilenceWatch, AWorkerWithoutLeasesWaitsForOthers) {
  auto watch = both_until(1);
  static_cast<void>(watch.heard(1, 5, 1));  // an epoch's end: worker 0 finishes what it has
  static_cast<void>(watch.heard(0, 0, 8));
  EXPECT_TRUE(watch.look(8).empty());
  watch.granted(1, 2, 8);
  static_cast<void>(watch.heard(0, 0, 9.5));
  EXPECT_TRUE(watch.look(9.5).empty()) << "1.5 s with a lease";
  static_cast<void>(watch.heard(0, 0, 11));
  EXPECT_EQ(watch.look(11).size(), 1U);
}

std::vector<SilenceWatch::Silent> overdue_until(SilenceWatch& watch, double from, double to, double limit_s) {
  std::vector<SilenceWatch::Silent> found;
  for (double t = from; t <= to; ++t)
    for (const auto& silent : watch.overdue(t, limit_s)) found.push_back(silent);
  return found;
}

TEST(SilenceWatch, OneThatTellsNothingForTooLongIsOverdueOnce) {
  auto watch = both_until(1);
  EXPECT_TRUE(overdue_until(watch, 1, 100, 100).empty());
  static_cast<void>(watch.heard(0, 0, 100));
  const auto found = overdue_until(watch, 101, 190, 100);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].worker, 1U);
  EXPECT_NEAR(found[0].for_s, 101, 1);
}

TEST(SilenceWatch, WithoutLeasesAndAfterPausesAsLongNobodyIsOverdue) {
  auto watch = both_until(1);
  static_cast<void>(watch.heard(0, 5, 1));  // all are done
  EXPECT_TRUE(overdue_until(watch, 1, 41, 100).empty());
  static_cast<void>(watch.heard(1, 0, 41));
  EXPECT_TRUE(overdue_until(watch, 41, 440, 100).empty()) << "ten times 40 s";
  EXPECT_EQ(overdue_until(watch, 441, 500, 100).size(), 1U);
  watch.granted(0, 1, 500);
  EXPECT_TRUE(overdue_until(watch, 501, 590, 100).empty()) << "it could not report before";
}

/// A process that was stopped for an hour hears its workers' reports after its own clock.
TEST(SilenceWatch, TimeThatNobodyWatchedDoesNotCount) {
  auto watch = both_until(1);
  EXPECT_TRUE(overdue_until(watch, 1, 50, 100).empty());
  EXPECT_TRUE(watch.overdue(3600, 100).empty());
  EXPECT_TRUE(overdue_until(watch, 3601, 3630, 100).empty());
  for (const auto worker : {0U, 1U}) static_cast<void>(watch.heard(worker, 0, 3630));
  EXPECT_TRUE(overdue_until(watch, 3631, 3730, 100).empty());
  EXPECT_EQ(overdue_until(watch, 3731, 4500, 100).size(), 2U) << "ten times 82 s, not ten hours";
}

TEST(SilenceWatch, NewcomersBeginAnew) {
  auto watch = both_until(1);
  watch.forget(1);
  watch.granted(1, 2, 2);
  static_cast<void>(watch.heard(0, 0, 60));
  EXPECT_TRUE(watch.look(60).empty()) << "it has not reported yet";
}

}  // namespace
}  // namespace troupe::experiment
