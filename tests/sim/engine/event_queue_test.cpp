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
  struct Scheduled {
    std::int64_t at;
    std::uint32_t who;
  };
  std::vector<Scheduled> expected;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    expected.push_back({static_cast<std::int64_t>(random.below(200)), i});
    queue.schedule(Duration{expected.back().at}, EventKind::step_ends, i, 7 * i);
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  EXPECT_EQ(queue.scheduled(), 5000U);
  Event event;
  for (const auto& scheduled : expected) {
    ASSERT_TRUE(queue.next(event));
    ASSERT_EQ(event.at, scheduled.at);
    ASSERT_EQ(event.who, scheduled.who);
    ASSERT_EQ(event.what, 7 * scheduled.who);
    ASSERT_EQ(queue.now().count(), scheduled.at);
  }
  EXPECT_FALSE(queue.next(event));
  EXPECT_EQ(queue.happened(), 5000U);
}

// Against an ordered map of (time, number): delays from zero to minutes, many of them equal; events add further events.
TEST(EventQueue, EqualsAnOrderedMap) {
  EventQueue queue;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::uint64_t> reference;
  core::Random random(2, core::Purpose::test, 0);
  std::uint32_t scheduled = 0;
  const auto add = [&] {
    const auto magnitude = random.below(37);
    const auto delay = static_cast<std::int64_t>(random.below(4) == 0 ? random.below(3) << magnitude
                                                                      : random.below(std::uint64_t{1} << magnitude));
    reference[{queue.now().count() + delay, scheduled}] = scheduled ^ 5;
    queue.schedule(queue.now() + Duration{delay}, EventKind::packet_here, scheduled, scheduled ^ 5);
    ++scheduled;
  };
  for (int i = 0; i < 300; ++i) add();
  Event event;
  for (int happened = 0; happened < 100'000; ++happened) {
    ASSERT_TRUE(queue.next(event));
    const auto expected = reference.begin();
    ASSERT_EQ(event.at, expected->first.first);
    ASSERT_EQ(event.who, expected->first.second);
    ASSERT_EQ(event.what, expected->second);
    reference.erase(expected);
    for (auto more = random.below(reference.size() < 2000 ? 3 : 2); more > 0; --more) add();
    if (reference.empty()) add();
  }
  EXPECT_EQ(queue.scheduled(), reference.size());
}

TEST(EventQueue, RefusesThePast) {
  EventQueue queue;
  queue.schedule(Duration{10}, EventKind::step_ends, 0);
  Event event;
  ASSERT_TRUE(queue.next(event));
  EXPECT_THROW(queue.schedule(Duration{9}, EventKind::step_ends, 0), std::logic_error);
  queue.schedule(Duration{10}, EventKind::step_ends, 1);
  EXPECT_TRUE(queue.next(event));
}

}  // namespace
}  // namespace troupe::sim
