/// A reliable channel over a transport that drops, duplicates and reorders: each message arrives once, and in order where that is promised.
#include "sim/explore/world/network.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace troupe::explore {
namespace {

using namespace std::chrono_literals;

struct Arrivals {
  std::vector<int> seen;
  std::vector<int> lost;
  std::uint64_t dropped = 0;
  std::uint64_t discarded = 0;
};

/// Sends `count` messages at once over one channel.
Arrivals send(Order order, const std::vector<Fault>& faults, Delays delays = Delays::extreme, int count = 50,
              std::optional<WorkerId> gone = {}) {
  EventQueue queue;
  Network network(queue, 3, delays, faults);
  Arrivals arrivals;
  for (int i = 0; i < count; ++i)
    network.send(
        {Traffic::request, 1, 2}, order, [&, i] { arrivals.seen.push_back(i); },
        [&, i] { arrivals.lost.push_back(i); });
  if (gone) network.close(*gone);
  while (queue.run_next()) {
  }
  arrivals.dropped = network.dropped();
  arrivals.discarded = network.discarded();
  return arrivals;
}

std::vector<int> first(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

const std::vector<Fault> kFaults{
    LostTransmission{Traffic::request, 0},         LostTransmission{Traffic::request, 7},
    LostTransmission{Traffic::request, 50},        DoubledTransmission{Traffic::request, 3},
    DoubledTransmission{Traffic::request, 49},     LostTransmission{Traffic::acknowledgement, 10},
    LostTransmission{Traffic::acknowledgement, 20}};

TEST(Network, EveryMessageArrivesOnceDespiteDropsAndCopies) {
  for (const auto delays : {Delays::even, Delays::extreme, Delays::heavy, Delays::constant}) {
    auto any = send(Order::any, kFaults, delays);
    EXPECT_EQ(any.dropped, 5U);
    EXPECT_GE(any.discarded, 3U) << "two doubled, and one repeated because its acknowledgement was dropped";
    std::sort(any.seen.begin(), any.seen.end());
    EXPECT_EQ(any.seen, first(50));
    EXPECT_TRUE(any.lost.empty());
    EXPECT_EQ(send(Order::fifo, kFaults, delays).seen, first(50)) << "in order, too";
  }
}

TEST(Network, ALostMemberRepeatsNothing) {
  const auto arrivals = send(Order::any, {LostTransmission{Traffic::request, 4}}, Delays::constant, 6, WorkerId{1});
  EXPECT_EQ(arrivals.seen, (std::vector<int>{0, 1, 2, 3, 5}));
  EXPECT_EQ(arrivals.lost, (std::vector<int>{4}));
}

TEST(Network, NewestMessageComesFirstInAWindow) {
  const auto arrivals = send(Order::any, {NewestFirst{Traffic::request, 1ms}}, Delays::even, 20).seen;
  const auto without = send(Order::any, {}, Delays::even, 20).seen;
  EXPECT_EQ(arrivals, (std::vector<int>{without.rbegin(), without.rend()}));
  EXPECT_EQ(send(Order::fifo, {NewestFirst{Traffic::request, 1ms}}, Delays::even, 20).seen, first(20));
}

TEST(Network, StarvationAndBurstsDelayArrivals) {
  const auto when = [](const Fault& fault, Traffic traffic) {
    EventQueue queue;
    Network network(queue, 3, Delays::constant, {fault});
    network.send({traffic, 1, 2}, Order::any, [] {});
    while (queue.run_next()) {
    }
    return queue.now();
  };
  EXPECT_EQ(when(Starvation{Traffic::request, 0ms, 7ms}, Traffic::request), 7ms + 15us);
  EXPECT_EQ(when(Starvation{Traffic::request, 0ms, 7ms}, Traffic::peer_message), 15us);
  EXPECT_EQ(when(Bursts{4ms}, Traffic::peer_message), 4ms);
  EXPECT_EQ(when(SlowShard{2, 100}, Traffic::request), 1500us);
  EXPECT_EQ(when(SlowShard{3, 100}, Traffic::request), 15us);
}

}  // namespace
}  // namespace troupe::explore
