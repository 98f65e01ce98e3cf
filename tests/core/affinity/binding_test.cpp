#include "core/affinity/binding.hpp"

#include <sched.h>

#include <atomic>
#include <fstream>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "tests/wait.hpp"

namespace troupe::core {
namespace {

/// The cpus of the calling thread, asked of the kernel without our code.
Cpus own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  Cpus cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

/// How long the calling thread has been ready to run without running.
std::chrono::nanoseconds own_waits() {
  std::ifstream file("/proc/thread-self/schedstat");
  std::int64_t ran = 0, waited = 0;
  EXPECT_TRUE(file >> ran >> waited);
  return std::chrono::nanoseconds(waited);
}

class Bindings : public ::testing::Test {
 protected:
  void SetUp() override {
    all_ = usable_cpus();
    if (all_.size() < 2) GTEST_SKIP() << "needs two cpus";
  }
  /// Runs `work` in a thread of its own: what it binds ends with it.
  template <class Work>
  static void in_thread(Work work) {
    std::jthread thread(std::move(work));
  }
  Cpus all_;
};

TEST_F(Bindings, ThreadAndItsChildrenStayOnTheirCpusUntilReleased) {
  in_thread([&] {
    auto binding = ThreadBinding::bind_this_thread({all_.back()});
    ASSERT_TRUE(binding);
    EXPECT_EQ(own_cpus(), (Cpus{all_.back()}));
    EXPECT_EQ(binding->cpus(), (Cpus{all_.back()}));
    EXPECT_EQ(usable_cpus(), all_);  // the process keeps the others
    std::latch born(1), released(1);
    Cpus before, after;
    std::jthread child([&] {
      before = own_cpus();
      born.count_down();
      released.wait();
      after = own_cpus();
    });
    born.wait();
    binding->release();
    released.count_down();
    child.join();
    EXPECT_EQ(before, (Cpus{all_.back()}));
    EXPECT_EQ(after, all_);
    EXPECT_EQ(own_cpus(), all_);
  });
  EXPECT_EQ(own_cpus(), all_);
}

TEST_F(Bindings, CpusThatDoNotExistAreRefused) {
  in_thread([&] {
    EXPECT_FALSE(ThreadBinding::bind_this_thread({}));
    EXPECT_FALSE(ThreadBinding::bind_this_thread({60000}));
    EXPECT_FALSE(ThreadBinding::bind_this_thread({4'000'000'000U}));
    EXPECT_EQ(own_cpus(), all_);
  });
}

// Two threads compute on one cpu. What a second is, the test says; how long the thread waits, the kernel.
TEST_F(Bindings, ThreadsThatWaitForTheirCpuAreReleased) {
  if (!tells_waits()) GTEST_SKIP() << "this kernel does not say how long threads wait";
  in_thread([&] {
    auto binding = ThreadBinding::bind_this_thread({all_.back()});
    ASSERT_TRUE(binding);
    std::atomic<bool> stop{false};
    std::jthread other([&] {
      while (!stop) std::atomic_signal_fence(std::memory_order_seq_cst);
    });
    const auto wait_for = [](std::chrono::nanoseconds time) {
      const auto before = own_waits();
      return tests::eventually([&] {
        for (volatile int work = 0; work < 20'000'000;) work = work + 1;  // a thread that sleeps does not wait
        return own_waits() - before > time;
      });
    };
    using namespace std::chrono_literals;
    EXPECT_FALSE(binding->release_if_crowded(0s));  // the first look only begins
    ASSERT_TRUE(wait_for(50ms));
    EXPECT_FALSE(binding->release_if_crowded(500ms));  // too early for a look
    EXPECT_FALSE(binding->release_if_crowded(1h));     // a small share of an hour
    EXPECT_EQ(own_cpus(), (Cpus{all_.back()}));
    ASSERT_TRUE(wait_for(300ms));
    EXPECT_TRUE(binding->release_if_crowded(1h + 1s));
    EXPECT_EQ(own_cpus(), all_);
    EXPECT_FALSE(binding->release_if_crowded(2h));  // once
    stop = true;
  });
}

}  // namespace
}  // namespace troupe::core
