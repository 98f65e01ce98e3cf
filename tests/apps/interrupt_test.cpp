#include "apps/interrupt.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <semaphore>
#include <thread>

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

/// Blocks until the thread that waits for signals has taken this one, which the caller blocks. At once: no sleep may fill kWindDown.
void await_taken(int signal) {
  for (sigset_t waiting{}; ::sigpending(&waiting) == 0 && ::sigismember(&waiting, signal) == 1;)
    std::this_thread::yield();
}

TEST(InterruptTest, TheFirstSignalAsksToStop) {
  EXPECT_TRUE(asks_to_stop(SIGINT));
  EXPECT_TRUE(asks_to_stop(SIGTERM));
  EXPECT_TRUE(asks_to_stop(SIGHUP)) << "a closed terminal";
}

TEST(InterruptTest, Sigusr1AsksForACheckpointAndNotToStop) {
  Interrupt interrupt;
  std::counting_semaphore<> asked(0);
  ::kill(::getpid(), SIGUSR1);  // without an action it has no effect
  interrupt.on_save_request([&] { asked.release(); });
  for (int k = 0; k < 3; ++k) {
    ::kill(::getpid(), SIGUSR1);
    ASSERT_TRUE(asked.try_acquire_for(std::chrono::seconds(60))) << k;
  }
  EXPECT_FALSE(interrupt.token().stop_requested());
  interrupt.on_save_request(nullptr);
}

/// nohup lets a program ignore SIGHUP before it starts.
TEST(InterruptTest, SighupStaysIgnoredUnderNohup) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGHUP, &ignore, &before), 0);
  {
    const Interrupt interrupt;
    std::binary_semaphore told(0);
    const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
    ::kill(::getpid(), SIGHUP);
    EXPECT_FALSE(interrupt.token().stop_requested());
    ::kill(::getpid(), SIGTERM);
    EXPECT_TRUE(told.try_acquire_for(std::chrono::seconds(60)));
  }
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(InterruptTest, EndsWithoutASignal) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.token().stop_requested());
}

TEST(InterruptDeathTest, SecondSignalExitsAtOnceAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        interrupt.second_signal_message("exits at once");
        std::binary_semaphore told(0);
        const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
        ::kill(::getpid(), SIGINT);
        told.acquire();
        ::kill(::getpid(), SIGINT);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(130), "troupe: exits at once");
}

/// Copies of a data set must not be left behind.
TEST(InterruptDeathTest, AnActionComesBeforeTheExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        interrupt.nothing_to_save(true);
        interrupt.before_exit([] { static_cast<void>(::write(STDERR_FILENO, "removed\n", 8)); });
        ::kill(::getpid(), SIGTERM);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(130), "removed");
}

/// When a parent with several threads is killed, Linux sends its children a SIGTERM (PR_SET_PDEATHSIG) for every thread.
TEST(InterruptDeathTest, SigtermsThatComeTogetherAreOneRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kStillThere = 7;
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        std::binary_semaphore told(0);
        std::binary_semaphore saved(0);
        const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
        interrupt.on_save_request([&] { saved.release(); });
        ::kill(::getpid(), SIGTERM);
        told.acquire();
        for (int k = 0; k < 3; ++k) {
          ::kill(::getpid(), SIGTERM);
          await_taken(SIGTERM);  // or it would merge with the next one
        }
        ::kill(::getpid(), SIGUSR1);  // a process that the last SIGTERM ended would not handle this
        saved.acquire();
        ::_exit(kStillThere);
      },
      testing::ExitedWithCode(kStillThere), "");
}

/// A shell and the kernel both send it when a terminal closes, the second one late.
TEST(InterruptDeathTest, SighupIsNeverASecondSignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kStillThere = 7;
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        std::binary_semaphore told(0);
        const std::stop_callback on_stop(interrupt.token(), [&] { told.release(); });
        ::kill(::getpid(), SIGHUP);
        told.acquire();
        for (int k = 0; k < 4; ++k) {
          ::kill(::getpid(), SIGHUP);
          ::poll(nullptr, 0, 300);  // together longer than kWindDown
        }
        ::_exit(kStillThere);
      },
      testing::ExitedWithCode(kStillThere), "");
}

/// A scheduler may ask for a checkpoint when the run has just ended.
TEST(InterruptDeathTest, Sigusr1AfterTheEndIsIgnored) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kStillThere = 7;
  EXPECT_EXIT(
      {
        { const Interrupt interrupt; }
        ::kill(::getpid(), SIGUSR1);
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
