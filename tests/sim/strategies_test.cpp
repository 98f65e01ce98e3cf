// Every strategy of the registry, in every variant, in virtual time.
#include <gtest/gtest.h>

#include "tests/sim/uneven_runs.hpp"

namespace troupe::sim {
namespace {

TEST(EveryStrategy, CompletesItsRunAndComputesEveryLease) {
  for (const auto& variant : strategies::variants()) {
    for (const std::uint32_t workers : {1U, 2U, 7U}) {
      SCOPED_TRACE(variant.text() + ", workers " + std::to_string(workers));
      const auto run = run_for(variant, workers, 3);
      const auto result = simulate(run, kUnevenCluster);
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_EQ(result->epochs, 2U);
      std::uint64_t steps = 0, passed = 0;
      for (const auto& worker : result->workers) {
        steps += worker.steps;
        passed += worker.totals.passed;
        EXPECT_EQ(worker.samples, 2 * worker.steps);
        EXPECT_LE(core::seconds(worker.compute), core::seconds(result->trained));
      }
      // 2 epochs of 23 samples per worker in batches of 2: rounded up to whole batches, or to whole rounds in in-step strategies.
      const std::uint64_t samples = 23 * std::uint64_t{run.workers};
      const std::uint64_t leases =
          run.needs.in_step ? run.workers * ((samples + 2 * run.workers - 1) / (2 * run.workers)) : (samples + 1) / 2;
      EXPECT_EQ(steps + passed, 2 * leases);
    }
  }
}

TEST(EveryStrategy, SameSeedGivesTheSameForecast) {
  for (const auto& variant : strategies::variants()) {
    SCOPED_TRACE(variant.text());
    const auto run = run_for(variant, 7, 3);
    const auto once = simulate(run, kUnevenCluster).value(), again = simulate(run, kUnevenCluster).value();
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
  auto run = run_for({"easgd", "tau = 1"}, 7, 3);
  const auto once = simulate(run, kUnevenCluster).value();
  run.seed = 2;
  EXPECT_NE(once.wall, simulate(run, kUnevenCluster).value().wall);
}

}  // namespace
}  // namespace troupe::sim
