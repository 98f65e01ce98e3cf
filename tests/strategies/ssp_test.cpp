/// The stale-synchronous bound and its read rule, under random schedules.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::VirtualRun;
using explore::VirtualRunOptions;

struct SspCase {
  Step s;
  Step steps_per_clock;
  std::string overlap;
  [[nodiscard]] std::string text() const {
    return "s = " + std::to_string(s) + "\nsteps_per_clock = " + std::to_string(steps_per_clock) + "\noverlap = \"" +
           overlap + "\"";
  }
};
const std::vector<SspCase> kSspCases{{0, 1, "off"},  {1, 1, "off"},  {3, 1, "off"}, {2, 3, "off"},
                                     {0, 1, "wait"}, {2, 1, "wait"}, {1, 2, "wait"}};

VirtualRunOptions random_shape(std::uint64_t seed) {
  core::Random random{seed, core::Purpose::test, 3};
  VirtualRunOptions options{.workers = static_cast<std::uint32_t>(2 + random.below(4)),
                            .servers = static_cast<std::uint32_t>(1 + random.below(3)),
                            .steps = 6 + random.below(12),
                            .seed = seed,
                            .delays = random.below(3) == 0 ? Delays::even : Delays::extreme};
  for (std::uint32_t w = 0; w < options.workers; ++w) options.slowdown.push_back(random.uniform(0.5, 6));
  return options;
}

/// Follows one run and tracks the versions that each worker has read. A pulled copy of shard k after n pushes there holds those n.
TEST(Ssp, NoWorkerIsMoreThanSClocksAheadAndReadsHoldTheRequiredUpdates) {
  std::uint64_t waited = 0;
  for (const auto& c : kSspCases) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(c.text() + "\nseed " + std::to_string(seed));
      const auto options = random_shape(seed);
      VirtualRun run(
          *made("[strategy]\nname = \"ssp\"\n" + c.text(), {.workers = options.workers, .servers = options.servers}),
          options);
      run.execute();
      // From the pushes that each shard applied, in order: how many clocks of each worker its centre holds at each version.
      std::map<std::pair<ShardId, Version>, std::vector<Step>> holds;  // by shard and version: clocks per worker
      for (ShardId s = 0; s < options.servers; ++s) {
        Version version = 0;
        std::vector<Step> clocks(options.workers);
        holds[{s, 0}] = clocks;
        for (const auto& [shard, event] : run.trace().server_events()) {
          const auto* request = std::get_if<Request>(&event);
          if (shard != s || !request || request->kind != Transfer::push) continue;
          clocks[request->worker] = request->clock / c.steps_per_clock;
          holds[{s, ++version}] = clocks;
        }
      }
      std::map<WorkerId, std::map<ShardId, Version>> read;  // of the parameters that each worker has
      std::map<WorkerId, std::map<ShardId, Version>> coming;
      std::vector<Step> clock(options.workers);
      for (const auto& [worker, event] : run.trace().worker_events()) {
        if (const auto* replied = std::get_if<Replied>(&event); replied && replied->exchange % 2 == 1)
          coming[worker][replied->shard] = replied->version;
        if (const auto* done = std::get_if<ExchangeDone>(&event); done && done->exchange % 2 == 1)
          read[worker] = coming[worker];
        const auto* step = std::get_if<StepDone>(&event);
        if (!step) continue;
        // The finished step belongs to this clock, and was computed with the versions in `read`.
        const Step now = step->step / c.steps_per_clock;
        for (ShardId s = 0; s < options.servers && now > c.s; ++s) {
          const auto& held = holds.at({s, read[worker].contains(s) ? read[worker][s] : 0});
          for (WorkerId other = 0; other < options.workers; ++other) {
            if (other == worker) continue;
            ASSERT_GE(held[other], now - c.s)
                << "worker " << worker << " in clock " << now << " on parameters without worker " << other
                << "'s clock " << now - c.s - 1;
          }
        }
      }
      for (WorkerId w = 0; w < options.workers; ++w) {
        const auto& totals = run.worker(w).host().totals();
        EXPECT_LE(totals.staleness_max, (options.workers - 1) * (2 * c.s + 2) + c.s + 1);
        waited += totals.wait.count() > 0 ? 1 : 0;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(waited, 100U) << "hardly anyone ever waited: this tests nothing";
}

TEST(Ssp, EveryPushCountsOnceAndNothingIsLeftBehind) {
  for (const auto& c : kSspCases) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(c.text() + "\nseed " + std::to_string(seed));
      auto options = random_shape(seed);
      std::uint64_t applied = 0;
      options.on_server_kernel = [&](const explore::ServerKernel& kernel) {
        if (!writes(kernel.call, kCenter)) return;
        ++applied;
        for (std::size_t i = 0; i < kernel.center.size(); ++i)
          ASSERT_FLOAT_EQ(kernel.center[i], kernel.center_before[i] + kernel.payload_before[i]);
      };
      VirtualRun run(
          *made("[strategy]\nname = \"ssp\"\n" + c.text(), {.workers = options.workers, .servers = options.servers}),
          options);
      run.execute();
      const Step clocks =
          (options.steps + c.steps_per_clock - 1) / c.steps_per_clock;  // the last clock may have fewer steps
      EXPECT_EQ(applied, clocks * options.workers * options.servers);
      for (WorkerId w = 0; w < options.workers && c.steps_per_clock > 1; ++w)
        for (const float left : run.worker(w).peek(kAcc)) EXPECT_EQ(left, 0);
    }
  }
}

TEST(Ssp, ALostMemberLeavesTheMinimum) {
  for (const auto& c : kSspCases) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      VirtualRunOptions options{.workers = 4,
                                .servers = 2,
                                .seed = seed,
                                .delays = Delays::extreme,
                                .losses = {{2, std::chrono::milliseconds(9)}}};
      VirtualRun run(*made("[strategy]\nname = \"ssp\"\n" + c.text(), {.workers = 4, .servers = 2}), options);
      ASSERT_NO_THROW(run.execute()) << c.text() << seed;
    }
  }
}

// Worker 2 returns under its old number; it had completed one clock. The others have completed 5 and 4.
TEST(Ssp, NewcomerStartsAtTheClockOfTheSlowestWorker) {
  const auto strategy = made("[strategy]\nname = \"ssp\"\ns = 2\n", {.workers = 3});
  const Membership all{1, {0, 1, 2}}, two{2, {0, 1}}, again{3, {0, 1, 2}};
  auto server = strategy->server();
  ServerActions then;
  RequestId id = 0;
  for (const auto& [worker, clock] : {std::pair{0U, Step{5}}, {1U, Step{4}}, {2U, Step{1}}})
    server->on(Request{.id = ++id, .worker = worker, .kind = Transfer::push, .clock = clock}, {0, all, 0}, then);
  server->on(MembershipChanged{two}, {0, two, 0}, then);
  auto restored = strategy->server();
  ASSERT_TRUE(restored->restore(server->state()));
  for (auto* rule : {server.get(), restored.get()}) {
    rule->on(MembershipChanged{again}, {0, again, 0}, then);
    then.clear();
    rule->on(Request{.id = ++id, .worker = 0, .kind = Transfer::pull, .clock = 6}, {0, again, 0}, then);
    ASSERT_TRUE(std::holds_alternative<Reply>(then.list().back()));
    EXPECT_EQ(std::get<Reply>(then.list().back()).min_clock, 4U);
    then.clear();
    rule->on(Request{.id = ++id, .worker = 0, .kind = Transfer::pull, .clock = 7}, {0, again, 0}, then);
    EXPECT_TRUE(std::holds_alternative<Hold>(then.list().back()));
  }
}

}  // namespace
}  // namespace troupe::strategies
