#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <map>
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

// Against an ordered map of (time, number): delays from zero to minutes, many of them equal; events add further events.
TEST(EventQueue, EqualsAnOrderedMap) {
  EventQueue queue;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::uint64_t> reference;
  core::Random random(2, core::Purpose::test, 0);
  std::uint32_t planned = 0;
  const auto plan = [&] {
    const auto magnitude = random.below(37);
    const auto delay = static_cast<std::int64_t>(random.below(4) == 0 ? random.below(3) << magnitude
                                                                      : random.below(std::uint64_t{1} << magnitude));
    reference[{queue.now().count() + delay, planned}] = planned ^ 5;
    queue.plan(queue.now() + Duration{delay}, EventKind::packet_here, planned, planned ^ 5);
    ++planned;
  };
  for (int i = 0; i < 300; ++i) plan();
  Event event;
  for (int happened = 0; happened < 100'000; ++happened) {
    ASSERT_TRUE(queue.next(event));
    const auto expected = reference.begin();
    ASSERT_EQ(event.at, expected->first.first);
    ASSERT_EQ(event.who, expected->first.second);
    ASSERT_EQ(event.what, expected->second);
    reference.erase(expected);
    for (auto more = random.below(reference.size() < 2000 ? 3 : 2); more > 0; --more) plan();
    if (reference.empty()) plan();
  }
  EXPECT_EQ(queue.planned(), reference.size());
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
