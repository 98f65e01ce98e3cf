// Every strategy of the registry, in every variant, in virtual time.
#include <gtest/gtest.h>

#include "tests/sim/uneven_runs.hpp"

namespace troupe::sim {
namespace {

TEST(EveryStrategy, CompletesItsRunAndComputesEveryLease) {
  for (const auto& variant : strategies::variants()) {
    for (const std::uint32_t workers : {1U, 2U, 7U}) {
      SCOPED_TRACE(variant.text() + ", workers " + std::to_string(workers));
      const auto plan = plan_for(variant, workers, 3);
      const auto outcome = simulate(plan, kUnevenCluster);
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->epochs, 2U);
      std::uint64_t steps = 0, passed = 0;
      for (const auto& worker : outcome->workers) {
        steps += worker.steps;
        passed += worker.totals.passed;
        EXPECT_EQ(worker.samples, 2 * worker.steps);
        EXPECT_LE(core::seconds(worker.compute), core::seconds(outcome->trained));
      }
      // 2 epochs of 23 samples per worker in batches of 2: rounded up to whole batches, or to whole rounds in in-step strategies.
      const std::uint64_t samples = 23 * std::uint64_t{plan.workers};
      const std::uint64_t leases = plan.needs.in_step
                                       ? plan.workers * ((samples + 2 * plan.workers - 1) / (2 * plan.workers))
                                       : (samples + 1) / 2;
      EXPECT_EQ(steps + passed, 2 * leases);
    }
  }
}

TEST(EveryStrategy, SameSeedGivesTheSameForecast) {
  for (const auto& variant : strategies::variants()) {
    SCOPED_TRACE(variant.text());
    const auto plan = plan_for(variant, 7, 3);
    const auto once = simulate(plan, kUnevenCluster).value(), again = simulate(plan, kUnevenCluster).value();
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

TEST(EveryStrategy, AnotherSeedGivesAnotherForecast) {
  auto plan = plan_for({"easgd", "tau = 1"}, 7, 3);
  const auto once = simulate(plan, kUnevenCluster).value();
  plan.seed = 2;
  EXPECT_NE(once.wall, simulate(plan, kUnevenCluster).value().wall);
}

}  // namespace
}  // namespace troupe::sim
