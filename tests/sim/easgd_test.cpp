// EASGD with two workers and one server in virtual time, computed by hand.
#include <gtest/gtest.h>

#include "tests/sim/scenario.hpp"

namespace troupe::sim {
namespace {

using std::chrono::milliseconds;

// 10^6 parameters are 4 MB: 4 ms on an 8 Gbit/s card. elastic_pair touches 16 MB: 1 ms at 16 GB/s.
constexpr const char* kCluster = R"(
[hosts.fast]
step_ms = 10
[hosts.slow]
step_ms = 12
[hosts.store]
devices = 0
[network]
latency_us = 1000
gbit_per_s = 8
[servers]
placement = "dedicated"
hosts = "store"
memory_gb_per_s = 16
)";

// Times in ms. First leases:
//   fast  step 0-10, request: head 11, on the store's card 11-15, server 15-16, answer: leaves 16-20, head 17, arrives 21
//   slow  step 0-12, request: head 13, waits for the card until 15, on it 15-19, server 19-20, answer: leaves 20, head 21, arrives 25
// Second leases:
//   fast  step 21-31, request: head 32, card 32-36, server 36-37, answer: leaves 37-41, head 38, arrives 42
//   slow  step 25-37, request: head 38, card 38-42, server 42-43, answer: leaves 43, head 44, arrives 48
TEST(EasgdInVirtualTime, TakesTheTimeComputedByHand) {
  const auto result = result_of({.settings = {"strategy.name=easgd", "strategy.tau=1"}, .cluster = kCluster});
  EXPECT_EQ(result.trained, milliseconds(48));
  EXPECT_EQ(result.wall, milliseconds(48));
  EXPECT_EQ(result.epochs, 1U);
  EXPECT_EQ(result.samples(), 4U);
  EXPECT_DOUBLE_EQ(result.images_per_s(), 4 / 0.048);
  EXPECT_DOUBLE_EQ(result.alone_images_per_s, 100);
  EXPECT_DOUBLE_EQ(result.ideal_images_per_s, 100 + 1 / 0.012);
  EXPECT_EQ(result.network_bytes, 4U * 2 * 4'000'000);
  EXPECT_DOUBLE_EQ(result.busiest_card, 16.0 / 48);  // the store's, each way
  EXPECT_DOUBLE_EQ(result.busiest_server, 4.0 / 48);

  const auto& fast = result.workers[0];
  EXPECT_EQ(fast.steps, 2U);
  EXPECT_EQ(fast.compute, milliseconds(20));
  EXPECT_EQ(fast.bytes, 16'000'000U);
  EXPECT_EQ(fast.totals.exchanges, 2U);
  EXPECT_EQ(fast.totals.exchange, milliseconds(11 + 11));
  EXPECT_EQ(fast.totals.wait, milliseconds(0));

  const auto& slow = result.workers[1];
  EXPECT_EQ(slow.compute, milliseconds(24));
  EXPECT_EQ(slow.totals.exchange, milliseconds(11 + 11));
  EXPECT_EQ(slow.totals.wait, milliseconds(2));
  const std::map<strategies::Cause, Duration> waits{{{strategies::Cause::Kind::server, 0}, milliseconds(2)}};
  EXPECT_EQ(slow.totals.waits.by_cause(), waits);
}

// Versions of the centre: fast's first update misses none; slow's first update is behind it; each second update is behind the
// other worker's last one.
TEST(EasgdInVirtualTime, CountsStaleness) {
  const auto result = result_of({.settings = {"strategy.name=easgd", "strategy.tau=1"}, .cluster = kCluster});
  const auto& fast = result.workers[0].totals.staleness.counts();
  const auto& slow = result.workers[1].totals.staleness.counts();
  EXPECT_EQ(fast[0], 1U);
  EXPECT_EQ(fast[1], 1U);
  EXPECT_EQ(slow[0], 0U);
  EXPECT_EQ(slow[1], 2U);
}

}  // namespace
}  // namespace troupe::sim
