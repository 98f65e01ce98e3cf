#include "core/clock.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, StandsStillUntilTold) {
  ManualClock clock;
  EXPECT_EQ(clock.now(), 0ns);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now(), 1500ms);
  clock.advance(1ns);
  EXPECT_EQ(clock.now(), 1'500'000'001ns);
  clock.set(2s);
  EXPECT_EQ(clock.now(), 2s);
}

TEST(SteadyClock, NeverGoesBack) {
  const SteadyClock clock;
  Duration before = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Duration now = clock.now();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Seconds, ConvertsNanoseconds) {
  EXPECT_EQ(seconds(1500ms), 1.5);
  EXPECT_EQ(seconds(-250us), -0.00025);
}

}  // namespace
}  // namespace troupe::core
