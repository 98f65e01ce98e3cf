#include "sim/cluster/network.hpp"

#include <chrono>
#include <map>

#include <gtest/gtest.h>

namespace troupe::sim {
namespace {

using std::chrono::microseconds;

/// Sends messages and records when each arrives.
class Wire {
 public:
  explicit Wire(const Cluster& cluster) : network_(queue_, cluster) {}

  void send(HostId from, HostId to, std::uint64_t bytes, PacketKind kind = PacketKind::request) {
    const auto index = network_.take();
    auto& packet = network_[index];
    packet.bytes = bytes;
    packet.from = from;
    packet.to = to;
    packet.line = Duration{0};
    packet.kind = kind;
    network_.send(index, queue_.now());
    sent_.push_back(index);
  }
  /// Arrival time by message number.
  std::map<std::size_t, Duration> run() {
    std::map<std::size_t, Duration> here;
    Event event;
    while (queue_.next(event)) {
      if (event.kind == EventKind::packet_head && !network_.head(event.who)) continue;
      order_.push_back(static_cast<std::size_t>(std::find(sent_.begin(), sent_.end(), event.who) - sent_.begin()));
      here[order_.back()] = queue_.now();
    }
    return here;
  }
  [[nodiscard]] Duration line(std::size_t number) { return network_[sent_[number]].line; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }

 private:
  EventQueue queue_;
  Network network_;
  std::vector<std::uint32_t> sent_;
  std::vector<std::size_t> order_;  // of arrival
};

// Cards of 8 Gbit/s: 1000 bytes take 1 µs.
Cluster cluster(std::uint32_t hosts) {
  Cluster cluster;
  cluster.hosts.assign(hosts, {.kind = 0, .card = gbit_per_s(8)});
  cluster.network = {.latency = microseconds(5), .per_message = microseconds(2)};
  return cluster;
}

TEST(Network, AnEmptyNetworkTakesLatencyMessageAndBytes) {
  Wire wire(cluster(2));
  wire.send(0, 1, 10'000);
  EXPECT_EQ(wire.run()[0], microseconds(2 + 5 + 10));
  EXPECT_EQ(wire.network().bytes(), 10'000U);
}

// The second message's head arrives with the first one's last byte, at 15: like a pull behind its push.
TEST(Network, AMessageWithoutBytesDoesNotOvertake) {
  auto machines = cluster(2);
  machines.network.per_message = Duration{0};
  Wire wire(machines);
  wire.send(0, 1, 10'000);
  wire.send(0, 1, 0);
  const auto here = wire.run();
  EXPECT_EQ(here.at(0), microseconds(15));
  EXPECT_EQ(here.at(1), microseconds(15));
  EXPECT_EQ(wire.order(), (std::vector<std::size_t>{0, 1}));
}

// The second message leaves when the card is free, at 12; the third goes to another host, but over the same card.
TEST(Network, TheSendersCardServesOneAfterTheOther) {
  Wire wire(cluster(3));
  wire.send(0, 1, 10'000);
  wire.send(0, 1, 10'000);
  wire.send(0, 2, 10'000);
  const auto here = wire.run();
  EXPECT_EQ(here.at(0), microseconds(17));
  EXPECT_EQ(here.at(1), microseconds(12 + 17));
  EXPECT_EQ(here.at(2), microseconds(24 + 17));
  EXPECT_EQ(wire.network().use()[0].out, microseconds(36));
  EXPECT_EQ(wire.network().use()[1].in, microseconds(20));
}

// All heads arrive at 7; the card receives the bytes of one message after the other.
TEST(Network, TheReceiversCardServesOneAfterTheOther) {
  Wire wire(cluster(4));
  for (HostId from = 1; from < 4; ++from) wire.send(from, 0, 10'000);
  const auto here = wire.run();
  EXPECT_EQ(here.at(0), microseconds(17));
  EXPECT_EQ(here.at(1), microseconds(27));
  EXPECT_EQ(here.at(2), microseconds(37));
  EXPECT_EQ(wire.line(0), Duration{0});
  EXPECT_EQ(wire.line(1), microseconds(10));
  EXPECT_EQ(wire.line(2), microseconds(20));
}

// A card ten times as fast receives ten messages of slow cards at the same time: each arrives when its sender has sent it.
TEST(Network, AFastCardTakesInSeveralSlowOnes) {
  auto fast = cluster(11);
  fast.hosts[0].card = gbit_per_s(80);
  Wire wire(fast);
  for (HostId from = 1; from < 11; ++from) wire.send(from, 0, 10'000);
  for (const auto& [number, at] : wire.run()) EXPECT_EQ(at, microseconds(17)) << number;
}

TEST(Network, WithinAHostOnlyMemoryAndLocalLatencyCount) {
  auto local = cluster(1);
  local.network.local_latency = microseconds(1);
  Wire lent(local);
  lent.send(0, 0, 10'000);
  lent.send(0, 0, 10'000);
  EXPECT_EQ(lent.run(), (std::map<std::size_t, Duration>{{0, microseconds(1)}, {1, microseconds(1)}}));
  local.network.local = gb_per_s(10);
  Wire copied(local);
  copied.send(0, 0, 10'000);
  copied.send(0, 0, 10'000);
  EXPECT_EQ(copied.run(), (std::map<std::size_t, Duration>{{0, microseconds(2)}, {1, microseconds(3)}}));
  EXPECT_EQ(copied.network().bytes(), 0U);
}

// A small message does not overtake a large one between the same two hosts.
TEST(Network, KeepsTheOrderOfSending) {
  Wire wire(cluster(3));
  wire.send(1, 0, 1'000'000);
  wire.send(2, 0, 500'000);
  wire.send(1, 0, 0);
  const auto here = wire.run();
  EXPECT_EQ(here.at(0), microseconds(2 + 5 + 1000));
  EXPECT_EQ(here.at(1), microseconds(2 + 5 + 1500));
  EXPECT_EQ(here.at(2), microseconds(2 + 5 + 1500));  // in line behind both
}

}  // namespace
}  // namespace troupe::sim
