/// Properties that hold for every strategy under every schedule: hundreds of random companies in virtual time. The cluster
/// itself throws when a worker hangs, a request is not answered exactly once, a version goes back, or lent memory is touched.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

using simulated::Carriage;
using simulated::Cluster;
using simulated::ClusterOptions;
using simulated::Delays;

constexpr std::uint64_t kSchedules = 50;  // for each variant

/// Runs it, checks what any run must keep, and returns its trace's hash.
std::uint64_t checked_run(const Strategy& strategy, const ClusterOptions& options) {
  Cluster cluster(strategy, options);
  cluster.run();
  std::uint64_t passed = 0;
  for (WorkerId w = 0; w < options.workers; ++w) passed += cluster.worker(w).host().totals().passed;
  EXPECT_EQ(cluster.leases_done() + passed, options.steps * options.workers);
  std::uint64_t asked = 0;
  for (const auto& [shard, event] : cluster.trace().server_events())
    asked += std::holds_alternative<Request>(event) ? 1 : 0;
  std::uint64_t answered = 0;
  for (const auto& [worker, event] : cluster.trace().worker_events())
    answered += std::holds_alternative<Replied>(event) ? 1 : 0;
  EXPECT_EQ(asked, answered);
  std::map<std::pair<WorkerId, ShardId>, std::set<ExchangeId>> exchanges;
  for (const auto& [worker, event] : cluster.trace().worker_events()) {
    if (const auto* replied = std::get_if<Replied>(&event)) {
      EXPECT_TRUE((exchanges[{worker, replied->shard}].insert(replied->exchange).second)) << "answered twice";
    }
  }
  for (WorkerId w = 0; w < options.workers; ++w) {
    const auto& totals = cluster.worker(w).host().totals();
    Duration laid{0};
    for (const auto& [cause, time] : totals.waits.by_cause()) laid += time;
    EXPECT_EQ(laid, totals.wait) << "a wait that nobody caused";
    EXPECT_EQ(totals.waits.by_cause().count({Cause::Kind::worker, w}), 0U) << "who waits for itself";
    std::uint64_t binned = 0;
    for (const auto count : totals.staleness.counts()) binned += count;
    EXPECT_EQ(binned, totals.updates);
    for (const float value : cluster.worker(w).params()) EXPECT_TRUE(std::isfinite(value)) << "read what nobody wrote";
  }
  for (const float value : cluster.center()) EXPECT_TRUE(std::isfinite(value));
  return cluster.trace().hash();
}

void expect_sound(const Strategy& strategy, ClusterOptions options) {
  const auto hash = checked_run(strategy, options);
  EXPECT_EQ(checked_run(strategy, options), hash) << "the same seed gave another run";
  options.carriage = Carriage::carried;
  EXPECT_EQ(checked_run(strategy, options), hash) << "a copy that travels gave other numbers than work in place";
}

TEST(Schedules, EveryRegisteredStrategyHasVariantsHere) {
  std::set<std::string> names;
  for (const auto& variant : variants()) names.insert(variant.name);
  for (const auto& row : registry()) EXPECT_TRUE(names.contains(row.name)) << row.name;
}

TEST(Schedules, EveryVariantIsSoundUnderEverySchedule) {
  for (const auto& variant : variants()) {
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      SCOPED_TRACE(variant.text() + ", seed " + std::to_string(seed));
      const auto company = random_company(variant, seed);
      expect_sound(*made_for(variant, company), company);
      if (HasFailure()) return;  // one schedule is enough to look at
    }
  }
}

TEST(Schedules, AnotherSeedIsAnotherRun) {
  for (const auto& variant : variants()) {
    std::set<std::uint64_t> hashes;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const auto company = fitted(variant, {.workers = 2, .seed = seed});
      hashes.insert(checked_run(*made_for(variant, company), company));
    }
    EXPECT_EQ(hashes.size(), 3U) << variant.text();
  }
}

TEST(Schedules, AsynchronousStrategiesSurviveALossAtAnyMoment) {
  for (const auto& variant : variants()) {
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      auto company = fitted(
          variant, {.workers = 4, .servers = 2, .seed = seed, .delays = seed % 2 ? Delays::even : Delays::extreme});
      const auto strategy = made_for(variant, company);
      if (strategy->needs().group) continue;
      SCOPED_TRACE(variant.text() + ", seed " + std::to_string(seed));
      core::Random random{seed, core::Purpose::test, 1};
      company.losses = {{static_cast<WorkerId>(random.below(4)), std::chrono::microseconds(random.below(30'000))}};
      for (const auto carriage : {Carriage::in_place, Carriage::carried}) {
        company.carriage = carriage;
        Cluster cluster(*strategy, company);
        ASSERT_NO_THROW(cluster.run());
        for (const float value : cluster.center()) ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

}  // namespace
}  // namespace troupe::strategies
