#include "actors/deployment/rejoin_pauses.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

TEST(RejoinPauses, TheFirstLossIsReplacedAtOnce) {
  RejoinPauses pauses;
  pauses.lost(100s);
  EXPECT_LE(pauses.not_before(), 100s);
}

TEST(RejoinPauses, EachRefusalDoublesThePauseUpToFiveMinutes) {
  RejoinPauses pauses;
  core::Duration now = 100s;
  for (const core::Duration pause : {4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s, 300s, 300s, 300s}) {
    pauses.refused(now);
    EXPECT_EQ(pauses.not_before() - now, pause);
    now += pause;
  }
}

// A program that fails in its first steps is admitted each time.
TEST(RejoinPauses, AWorkerThatDiesAgainAndAgainIsRestartedWithGrowingPauses) {
  RejoinPauses pauses;
  core::Duration now = 100s;
  pauses.lost(now);
  for (const core::Duration pause : {4s, 8s, 16s}) {
    pauses.admitted(now);
    now += 1s;
    pauses.lost(now);
    EXPECT_EQ(pauses.not_before() - now, pause);
    now += pause;
  }
}

TEST(RejoinPauses, ALongLifeIsForgiven) {
  RejoinPauses pauses;
  pauses.refused(100s);
  pauses.refused(200s);
  pauses.admitted(300s);
  pauses.lost(300s + kSettled);
  EXPECT_LE(pauses.not_before(), 300s + kSettled);
  pauses.refused(1000s);
  EXPECT_EQ(pauses.not_before(), 1004s);
}

}  // namespace
}  // namespace troupe::actors
