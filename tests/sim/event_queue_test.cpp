#include "sim/event_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace troupe::sim {
namespace {

TEST(EventQueue, OrdersByTimeThenByPlanning) {
  EventQueue queue;
  core::Random random(1, core::Purpose::test, 0);
  struct Planned {
    std::int64_t at;
    std::uint32_t who;
  };
  std::vector<Planned> expected;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    expected.push_back({static_cast<std::int64_t>(random.below(200)), i});
    queue.plan(Duration{expected.back().at}, EventKind::step_ends, i, 7 * i);
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  EXPECT_EQ(queue.planned(), 5000U);
  Event event;
  for (const auto& planned : expected) {
    ASSERT_TRUE(queue.next(event));
    ASSERT_EQ(event.at, planned.at);
    ASSERT_EQ(event.who, planned.who);
    ASSERT_EQ(event.what, 7 * planned.who);
    ASSERT_EQ(queue.now().count(), planned.at);
  }
  EXPECT_FALSE(queue.next(event));
  EXPECT_EQ(queue.happened(), 5000U);
}

TEST(EventQueue, TakesEventsThatArePlannedMeanwhile) {
  EventQueue queue;
  core::Random random(2, core::Purpose::test, 0);
  for (std::uint32_t i = 0; i < 100; ++i)
    queue.plan(Duration{static_cast<std::int64_t>(random.below(50))}, EventKind::step_ends, i);
  Event event;
  std::int64_t before = 0;
  for (int happened = 0; happened < 20'000; ++happened) {
    ASSERT_TRUE(queue.next(event));
    ASSERT_GE(event.at, before);
    before = event.at;
    queue.plan(queue.now() + Duration{static_cast<std::int64_t>(random.below(50))}, EventKind::step_ends, 0);
  }
  EXPECT_EQ(queue.planned(), 100U);
}

TEST(EventQueue, RefusesThePast) {
  EventQueue queue;
  queue.plan(Duration{10}, EventKind::step_ends, 0);
  Event event;
  ASSERT_TRUE(queue.next(event));
  EXPECT_THROW(queue.plan(Duration{9}, EventKind::step_ends, 0), std::logic_error);
  queue.plan(Duration{10}, EventKind::step_ends, 1);
  EXPECT_TRUE(queue.next(event));
}

}  // namespace
}  // namespace troupe::sim
