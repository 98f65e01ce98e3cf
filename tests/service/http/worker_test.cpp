#include "service/http/worker.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include <gtest/gtest.h>

namespace troupe::service {
namespace {

struct Priority {
  int policy = 0, nice = 0;
  bool operator==(const Priority&) const = default;
};

Priority own_priority() {
  return {::sched_getscheduler(0), ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()))};
}

TEST(WorkerTest, ItLetsOthersGoFirstAndItsMakerKeepsItsPriority) {
  const auto before = own_priority();
  std::promise<Priority> worker;
  auto found = worker.get_future();
  Worker tasks;
  ASSERT_TRUE(tasks.post([&] { worker.set_value(own_priority()); }));
  const auto [policy, nice] = found.get();
  EXPECT_EQ(policy, before.policy == SCHED_OTHER ? SCHED_BATCH : before.policy);
  EXPECT_EQ(nice, std::max(before.nice, kBackgroundNice));
  EXPECT_EQ(own_priority(), before) << "what it starts must not be slowed";
}

}  // namespace
}  // namespace troupe::service
