// Every strategy of the registry, in every way of working, in virtual time.
#include <gtest/gtest.h>

#include "sim/placement.hpp"
#include "tests/sim/scenario.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::sim {
namespace {

constexpr const char* kCluster = R"(
[hosts.fast]
count = 3
devices = 2
step_ms = 3
step_sigma = 0.3
[hosts.slow]
count = 4
step_ms = 5
memory_gb_per_s = 8
[network]
latency_us = 50
per_message_us = 5
gbit_per_s = 10
local_latency_us = 2
local_gb_per_s = 10
[servers]
per_request_us = 10
memory_gb_per_s = 10
[collectives]
sum_gb_per_s = 5
memory_gb_per_s = 10
[steps]
buckets = 3
)";

Plan plan_for(const strategies::Variant& variant, std::uint32_t workers, std::uint32_t servers) {
  const auto company = strategies::fitted(variant, {.workers = workers, .servers = servers});
  Plan plan;
  plan.strategy = strategies::made_for(variant, company);
  plan.needs = plan.strategy->needs();
  plan.workers = company.workers;
  plan.servers = plan.needs.servers ? company.servers : 0;
  plan.leases = {.epoch_size = 23 * std::int64_t{plan.workers},
                 .epochs = 2,
                 .batches = std::vector<std::int64_t>(plan.workers, 2),
                 .sharing = plan.needs.in_step ? data::Sharing::shares : data::Sharing::on_demand};
  plan.train.optimizer = variant.name == "eamsgd" ? "nesterov" : "sgd";
  plan.floats = 100'000;
  return plan;
}

TEST(EveryStrategy, ComesToItsEndAndComputesEveryLease) {
  for (const auto& variant : strategies::variants()) {
    for (const std::uint32_t workers : {1U, 2U, 7U}) {
      SCOPED_TRACE(variant.text() + ", workers " + std::to_string(workers));
      const auto plan = plan_for(variant, workers, 3);
      const auto outcome = simulate(plan, kCluster);
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->epochs, 2U);
      std::uint64_t steps = 0, passed = 0;
      for (const auto& worker : outcome->workers) {
        steps += worker.steps;
        passed += worker.totals.passed;
        EXPECT_EQ(worker.samples, 2 * worker.steps);
        EXPECT_LE(core::seconds(worker.compute), core::seconds(outcome->trained));
      }
      // 2 epochs of 23 samples per worker in batches of 2: rounded up to whole batches, in step to whole rounds.
      const std::uint64_t samples = 23 * std::uint64_t{plan.workers};
      const std::uint64_t leases = plan.needs.in_step
                                       ? plan.workers * ((samples + 2 * plan.workers - 1) / (2 * plan.workers))
                                       : (samples + 1) / 2;
      EXPECT_EQ(steps + passed, 2 * leases);
    }
  }
}

TEST(EveryStrategy, IsTheSameFromOneTimeToTheNext) {
  for (const auto& variant : strategies::variants()) {
    SCOPED_TRACE(variant.text());
    const auto plan = plan_for(variant, 7, 3);
    const auto once = simulate(plan, kCluster).value(), again = simulate(plan, kCluster).value();
    EXPECT_EQ(once.wall, again.wall);
    EXPECT_EQ(once.events, again.events);
    for (std::size_t worker = 0; worker < once.workers.size(); ++worker) {
      EXPECT_EQ(once.workers[worker].steps, again.workers[worker].steps);
      EXPECT_EQ(once.workers[worker].totals.wait, again.workers[worker].totals.wait);
      EXPECT_EQ(once.workers[worker].totals.exchange, again.workers[worker].totals.exchange);
      EXPECT_EQ(once.workers[worker].totals.staleness_sum, again.workers[worker].totals.staleness_sum);
    }
  }
}

TEST(EveryStrategy, DependsOnTheSeed) {
  auto plan = plan_for({"easgd", "tau = 1"}, 7, 3);
  const auto once = simulate(plan, kCluster).value();
  plan.seed = 2;
  EXPECT_NE(once.wall, simulate(plan, kCluster).value().wall);
}

}  // namespace
}  // namespace troupe::sim
