#include "sim/cluster/collective_costs.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace troupe::sim {
namespace {

using std::chrono::microseconds;

// 10^6 parameters are 4 MB. One byte takes 1 ns on a card (8 Gbit/s), 0.25 ns to sum, 0.125 ns to convert or to move in memory.
Cluster cluster(std::uint32_t hosts, std::uint32_t devices) {
  Cluster cluster;
  cluster.kinds.push_back({.name = "node", .count = hosts, .devices = devices});
  cluster.hosts.assign(hosts, {.kind = 0, .card = gbit_per_s(8)});
  cluster.network = {.latency = microseconds(10),
                     .per_message = microseconds(1),
                     .local_latency = microseconds(1),
                     .local = gb_per_s(8)};
  cluster.collectives.fill({.sum = gb_per_s(4), .convert = gb_per_s(8), .memory = gb_per_s(8)});
  return cluster;
}

constexpr Vector kVector{.floats = 1'000'000};
const std::vector<HostId> kApart{0, 1, 2, 3};
const std::vector<HostId> kPaired{0, 0, 1, 1};
const std::vector<HostId> kTogether{0, 0, 0, 0};

Duration reduce(const Cluster& cluster, Algorithm algorithm, const std::vector<HostId>& hosts,
                const Vector& vector = kVector) {
  return CollectiveCosts(cluster, algorithm).reduce(vector, hosts);
}

TEST(CollectiveCosts, ReductionsOverFourHostsMatchValuesByHand) {
  const auto c = cluster(4, 1);
  // 2 · 3 messages of 11 µs, 1.5 · 4 MB on the wire, 0.75 · 4 MB summed
  EXPECT_EQ(reduce(c, Algorithm::ring, kApart), microseconds(66 + 6000 + 750));
  // two phases of one latency and 3 messages, the same bytes, 4 MB summed
  EXPECT_EQ(reduce(c, Algorithm::asa, kApart), microseconds(26 + 6000 + 1000));
  // half the bytes; (3 + 1/4) · 4 MB converted
  EXPECT_EQ(reduce(c, Algorithm::asa16, kApart), microseconds(26 + 3000 + 1000 + 1625));
  // log2 4 messages
  EXPECT_EQ(reduce(c, Algorithm::ar, kApart), microseconds(22 + 6000 + 750));
}

TEST(CollectiveCosts, RanksOfOneHostShareItsCard) {
  const auto c = cluster(2, 2);
  // each rank spreads 2 · 4 MB; 2 ranks send half of it to the other host: 8 MB through each card
  EXPECT_EQ(reduce(c, Algorithm::asa, kPaired), microseconds(26 + 8000 + 1000));
  // ring neighbours share a host: a card carries what one rank sends
  EXPECT_EQ(reduce(c, Algorithm::ring, kPaired), microseconds(66 + 6000 + 750));
  // inside: 4 local latencies, (2 · 2 + 1) · 4 MB in memory; between two hosts: 2 messages, 4 MB, 2 MB summed
  EXPECT_EQ(reduce(c, Algorithm::hierarchical, kPaired), microseconds(4 + 2500 + 22 + 4000 + 500));
}

TEST(CollectiveCosts, ReductionsWithinOneHostMatchValuesByHand) {
  auto c = cluster(1, 4);
  // 2 signals; each rank reads and writes its quarter of four arenas: 32 MB
  EXPECT_EQ(reduce(c, Algorithm::shm, kTogether), microseconds(2 + 4000));
  // four ranks' 2 · 3/4 · 4 MB share the memory: 24 MB at 8 GB/s
  EXPECT_EQ(reduce(c, Algorithm::asa, kTogether), microseconds(2 * (1 + 3) + 3000 + 1000));
  c.kinds[0].device = gb_per_s(2);  // links of their own: 6 MB at 2 GB/s
  EXPECT_EQ(reduce(c, Algorithm::asa, kTogether), microseconds(2 * (1 + 3) + 3000 + 1000));
  c.kinds[0].device = gb_per_s(1);
  EXPECT_EQ(reduce(c, Algorithm::asa, kTogether), microseconds(2 * (1 + 3) + 6000 + 1000));
}

TEST(CollectiveCosts, TensorsAndOwnRatesChangeTheCost) {
  auto c = cluster(4, 1);
  EXPECT_EQ(reduce(c, Algorithm::ring, kApart, {.floats = 1'000'000, .parts = 10}), microseconds(660 + 6000 + 750));
  c.collectives[static_cast<std::size_t>(Algorithm::ar)].rate = gb_per_s(0.5);
  EXPECT_EQ(reduce(c, Algorithm::ar, kApart), microseconds(22 + 12'000 + 750));
  EXPECT_EQ(reduce(c, Algorithm::asa, kApart), microseconds(26 + 6000 + 1000));
}

TEST(CollectiveCosts, AutomaticDependsOnWhereTheRanksSit) {
  const auto c = cluster(4, 4);
  const CollectiveCosts costs(c, Algorithm::automatic);
  EXPECT_EQ(costs.chosen(kApart), Algorithm::ring);
  EXPECT_EQ(costs.chosen(kPaired), Algorithm::hierarchical);
  EXPECT_EQ(costs.chosen(kTogether), Algorithm::shm);
}

TEST(CollectiveCosts, BroadcastsMatchValuesByHand) {
  const auto c = cluster(4, 4);
  // log2 4 messages; 2 · 3/4 of 4 MB, as a scatter and an allgather, is less than 2 · 4 MB down a tree
  EXPECT_EQ(CollectiveCosts(c, Algorithm::ring).broadcast(kVector, kApart), microseconds(22 + 6000));
  // two ranks: one message, 4 MB
  EXPECT_EQ(CollectiveCosts(c, Algorithm::ring).broadcast(kVector, std::vector<HostId>{0, 1}), microseconds(11 + 4000));
  // one read and three writes: 16 MB of memory
  EXPECT_EQ(CollectiveCosts(c, Algorithm::shm).broadcast(kVector, kTogether), microseconds(1 + 2000));
}

/// By host.
std::vector<Duration> card_time(const Cluster& cluster, Algorithm algorithm, const std::vector<HostId>& hosts,
                                bool broadcast = false) {
  std::vector<Duration> busy(cluster.hosts.size());
  CollectiveCosts(cluster, algorithm).add_card_time(kVector, hosts, broadcast, busy);
  return busy;
}

// The bytes and messages of the times above, without latency, sums and memory.
TEST(CollectiveCosts, CardsAreBusyWithBytesAndMessages) {
  const auto four = cluster(4, 1);
  EXPECT_EQ(card_time(four, Algorithm::ring, kApart), std::vector<Duration>(4, microseconds(6 + 6000)));
  EXPECT_EQ(card_time(four, Algorithm::asa, kApart), std::vector<Duration>(4, microseconds(6 + 6000)));
  EXPECT_EQ(card_time(four, Algorithm::asa16, kApart), std::vector<Duration>(4, microseconds(6 + 3000)));
  EXPECT_EQ(card_time(four, Algorithm::ar, kApart), std::vector<Duration>(4, microseconds(2 + 6000)));
  EXPECT_EQ(card_time(four, Algorithm::ring, kApart, true), std::vector<Duration>(4, microseconds(2 + 6000)));
  const auto two = cluster(2, 2);
  EXPECT_EQ(card_time(two, Algorithm::asa, kPaired), std::vector<Duration>(2, microseconds(6 + 8000)));
  EXPECT_EQ(card_time(two, Algorithm::hierarchical, kPaired), std::vector<Duration>(2, microseconds(2 + 4000)));
  EXPECT_EQ(card_time(cluster(1, 4), Algorithm::shm, kTogether), std::vector<Duration>(1));
}

// A library that stages through the host's memory is slower than the card, which stays idle meanwhile.
TEST(CollectiveCosts, AnAlgorithmsOwnRateDoesNotKeepTheCardBusyLonger) {
  auto slow = cluster(4, 1);
  slow.collectives.fill({.rate = gb_per_s(0.1)});
  EXPECT_EQ(card_time(slow, Algorithm::ring, kApart), std::vector<Duration>(4, microseconds(6 + 6000)));
  EXPECT_GT(reduce(slow, Algorithm::ring, kApart), microseconds(60'000));
}

TEST(CollectiveCosts, OneRankCostsNothing) {
  const auto c = cluster(1, 1);
  EXPECT_EQ(reduce(c, Algorithm::ring, {0}), Duration{0});
  EXPECT_EQ(CollectiveCosts(c, Algorithm::automatic).broadcast(kVector, std::vector<HostId>{0}), Duration{0});
}

}  // namespace
}  // namespace troupe::sim
