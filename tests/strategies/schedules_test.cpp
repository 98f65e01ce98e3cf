/// Properties of every strategy under every schedule: hundreds of random runs in virtual time. The cluster throws
/// when a worker blocks, a request is not answered exactly once, a version decreases, or lent memory is touched.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "sim/explore/world/invariant.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

using explore::Carriage;
using explore::Delays;
using explore::VirtualRun;
using explore::VirtualRunOptions;

constexpr std::uint64_t kSchedules = 50;  // for each variant

/// Runs the strategy, checks the properties of any run, and returns the hash of its trace.
std::uint64_t checked_run(const Strategy& strategy, const VirtualRunOptions& options) {
  VirtualRun run(strategy, options);
  run.execute();
  std::uint64_t passed = 0;
  for (WorkerId w = 0; w < options.workers; ++w) passed += run.worker(w).host().totals().passed;
  EXPECT_EQ(run.leases_done() + passed, options.steps * options.workers);
  std::uint64_t asked = 0;
  for (const auto& [shard, event] : run.trace().server_events())
    asked += std::holds_alternative<Request>(event) ? 1 : 0;
  std::uint64_t answered = 0;
  for (const auto& [worker, event] : run.trace().worker_events())
    answered += std::holds_alternative<Replied>(event) ? 1 : 0;
  EXPECT_EQ(asked, answered);
  std::map<std::pair<WorkerId, ShardId>, std::set<ExchangeId>> exchanges;
  for (const auto& [worker, event] : run.trace().worker_events()) {
    if (const auto* replied = std::get_if<Replied>(&event)) {
      EXPECT_TRUE((exchanges[{worker, replied->shard}].insert(replied->exchange).second)) << "answered twice";
    }
  }
  for (WorkerId w = 0; w < options.workers; ++w) {
    const auto& totals = run.worker(w).host().totals();
    Duration laid{0};
    for (const auto& [cause, time] : totals.waits.by_cause()) laid += time;
    EXPECT_EQ(laid, totals.wait) << "a wait that nobody caused";
    EXPECT_EQ(totals.waits.by_cause().count({Cause::Kind::worker, w}), 0U) << "who waits for itself";
    std::uint64_t binned = 0;
    for (const auto count : totals.staleness.counts()) binned += count;
    EXPECT_EQ(binned, totals.updates);
    for (const float value : run.worker(w).params()) EXPECT_TRUE(std::isfinite(value)) << "read what nobody wrote";
  }
  for (const float value : run.center()) EXPECT_TRUE(std::isfinite(value));
  return run.trace().hash();
}

void expect_sound(const Strategy& strategy, VirtualRunOptions options) {
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
      const auto shape = random_shape(variant, seed);
      expect_sound(*made_for(variant, shape), shape);
      if (HasFailure()) return;  // the first failing schedule is enough
    }
  }
}

/// The size of the smallest group that reduces or broadcasts; 0: none does.
class SmallestGroup final : public explore::Invariant {
 public:
  void performed(const VirtualRun&, Step, const explore::Collectives::Task& task,
                 const std::vector<std::vector<float>>&, const std::vector<core::Span>&) override {
    size = size == 0 ? task.group.size() : std::min(size, task.group.size());
  }
  std::size_t size = 0;
};

TEST(Schedules, NeedsSayWhetherGroupsAreSmallerThanAll) {
  for (const auto& variant : variants()) {
    SmallestGroup smallest;
    const auto shape = fitted(variant, {.workers = 5, .servers = 3, .steps = 12, .invariants = {&smallest}});
    const auto strategy = made_for(variant, shape);
    VirtualRun(*strategy, shape).execute();
    const auto needs = strategy->needs();
    const bool all = needs.group && !needs.subgroups;
    EXPECT_EQ(smallest.size == 5U, all) << variant.text();
    EXPECT_TRUE(needs.group || smallest.size == 0) << variant.text();
    EXPECT_TRUE(needs.group || !needs.subgroups) << variant.text();
  }
}

TEST(Schedules, AnotherSeedIsAnotherRun) {
  for (const auto& variant : variants()) {
    std::set<std::uint64_t> hashes;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const auto shape = fitted(variant, {.workers = 2, .seed = seed});
      hashes.insert(checked_run(*made_for(variant, shape), shape));
    }
    EXPECT_EQ(hashes.size(), 3U) << variant.text();
  }
}

/// Loses members: the survivors finish all the work, and all numbers stay finite. Returns how many were lost.
std::uint64_t expect_survived(const Strategy& strategy, VirtualRunOptions shape) {
  std::uint64_t lost = 0;
  for (const auto carriage : {Carriage::in_place, Carriage::carried}) {
    shape.carriage = carriage;
    VirtualRun run(strategy, shape);
    EXPECT_NO_THROW(run.execute());
    for (const float value : run.center()) EXPECT_TRUE(std::isfinite(value));
    for (WorkerId w = 0; w < shape.workers; ++w) {
      const auto& worker = run.worker(w);
      lost += worker.alive() ? 0 : 1;
      if (!worker.alive()) continue;
      for (const float value : worker.params()) EXPECT_TRUE(std::isfinite(value));
      if (strategy.needs().in_step) {
        EXPECT_GE(worker.host().steps(), shape.steps) << "the others share the rounds that it would have had";
      }
    }
    if (!strategy.needs().in_step) {
      EXPECT_EQ(run.leases_done(), shape.steps * shape.workers) << "leases of the lost went to others";
    }
    if (strategy.needs().peers) {
      EXPECT_NEAR(run.weight(), 1, 1e-12);
    }
  }
  return lost;
}

/// Strategies with collectives are left out: a coordinator restarts them, and there is none here.
template <class Losses>
void expect_all_survive(const Losses& losses_for) {
  for (const auto& variant : variants()) {
    std::uint64_t losses = 0;  // planned losses: some come after the end of the run
    std::uint64_t lost = 0;    // in two runs for each seed
    const auto needs = made_for(variant, fitted(variant, {}))->needs();
    if (needs.group) continue;
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      SCOPED_TRACE(variant.text() + ", seed " + std::to_string(seed));
      auto shape = fitted(
          variant, {.workers = 4, .servers = 2, .seed = seed, .delays = seed % 2 ? Delays::even : Delays::extreme});
      core::Random random{seed, core::Purpose::test, 1};
      shape.losses = losses_for(random, needs);
      losses += shape.losses.size();
      if (needs.peers) shape.peer_message_loss = 0.25;
      lost += expect_survived(*made_for(variant, shape), shape);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(lost, losses) << variant.text() << ": hardly anyone was ever lost: this tests nothing";
  }
}

TEST(Schedules, TheOthersSurviveALossAtAnyMoment) {
  expect_all_survive([](core::Random random, const Needs&) {
    return std::vector<explore::Loss>{
        {static_cast<WorkerId>(random.below(4)), std::chrono::microseconds(random.below(30'000))}};
  });
}

/// The worker is lost while its request is in transit, held, or answered; also two workers at once.
TEST(Schedules, TheOthersSurviveALossInTheMiddleOfAnExchange) {
  expect_all_survive([](core::Random random, const Needs& needs) {
    if (!needs.servers) return std::vector<explore::Loss>{};
    const auto first = static_cast<WorkerId>(random.below(4));
    std::vector<explore::Loss> losses{{first, std::chrono::microseconds(random.below(20'000)), true}};
    if (random.below(2) == 0)
      losses.push_back({(first + 1) % 4, std::chrono::microseconds(random.below(20'000)), true});
    return losses;
  });
}

}  // namespace
}  // namespace troupe::strategies
