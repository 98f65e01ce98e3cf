#include "apps/interrupt.hpp"

#include <poll.h>
#include <unistd.h>

#include <semaphore>

#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

bool asks_to_stop(int signal) {
  const Interrupt interrupt;
  std::binary_semaphore told(0);
  const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
  ::kill(::getpid(), signal);
  return told.try_acquire_for(std::chrono::seconds(60)) && interrupt.token().stop_requested();
}

TEST(InterruptTest, TheFirstSignalAsksToStop) {
  EXPECT_TRUE(asks_to_stop(SIGINT));
  EXPECT_TRUE(asks_to_stop(SIGTERM));
}

TEST(InterruptTest, EndsWithoutASignal) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.token().stop_requested());
}

TEST(InterruptDeathTest, SecondSignalExitsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        std::binary_semaphore told(0);
        const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
        ::kill(::getpid(), SIGINT);
        told.acquire();
        ::kill(::getpid(), SIGINT);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(130), "");
}

/// When a parent with several threads is killed, Linux sends its children a SIGTERM (PR_SET_PDEATHSIG) for every thread.
TEST(InterruptDeathTest, SigtermsThatComeTogetherAreOneRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kStillThere = 7;
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        std::binary_semaphore told(0);
        const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
        ::kill(::getpid(), SIGTERM);
        told.acquire();
        for (int k = 0; k < 3; ++k) {
          ::kill(::getpid(), SIGTERM);
          ::poll(nullptr, 0, 50);
        }
        ::_exit(kStillThere);
      },
      testing::ExitedWithCode(kStillThere), "");
}

TEST(InterruptDeathTest, WithNothingToSaveTheFirstSignalExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        interrupt.nothing_to_save(true);
        ::kill(::getpid(), SIGINT);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(130), "interrupted before it began");
}

}  // namespace
}  // namespace troupe::apps
