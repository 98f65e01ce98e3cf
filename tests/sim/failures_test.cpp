#include <gtest/gtest.h>

#include "tests/sim/uneven_runs.hpp"

namespace troupe::sim {
namespace {

using std::chrono::milliseconds;

std::string with(const std::string& faults) { return std::string(kUnevenCluster) + faults; }

// Hosts fail again and again and return where the strategy allows it. The rates are such that every run loses some workers.
TEST(Failures, EveryStrategyCompletesItsRun) {
  std::uint64_t lost = 0, returned = 0, without_anyone = 0;
  for (const auto& variant : strategies::variants()) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(variant.text() + ", seed " + std::to_string(seed));
      auto run = run_for(variant, 7, 3);
      run.seed = seed;
      const auto result =
          simulate(run, with("[failures]\nmean_time_between_s = 0.6\ndetection_s = 0.1\nrejoin_s = 0.15\n"));
      const bool may_return = run.needs.takes_newcomers();
      if (!result) {  // a moment without any worker ends a run
        EXPECT_EQ(result.error().code, core::Errc::peer_lost) << result.error().message;
        ++without_anyone;
        continue;
      }
      EXPECT_EQ(result->epochs, 2U);
      lost += result->lost;
      returned += result->returned;
      if (run.needs.peers) {
        EXPECT_NEAR(result->weight + result->lost_weight, 1, 1e-12);
      }
      if (!may_return) {
        EXPECT_EQ(result->returned, 0U);
      }
    }
  }
  EXPECT_GT(lost, 100U);
  EXPECT_GT(returned, 30U);
  EXPECT_LT(without_anyone, 20U);  // of some 400 runs
}

// Two workers, 10 ms a step, all else takes no time; EASGD grants leases on demand. Worker 1 dies at 25 ms in its third lease.
// At 30 ms the loss is known and the lease returns. Worker 0 computes 8 of 10 samples: 0-80 ms; worker 1 computes two.
TEST(Failures, ALostWorkersLeaseGoesToAnother) {
  const auto result = result_of({.settings = {"strategy.name=easgd", "strategy.tau=1"},
                                 .cluster = "[hosts.a]\ncount = 2\nstep_ms = 10\n[failures]\ndetection_s = 0.005\n"
                                            "[loss.one]\nworker = 1\nat_s = 0.025\n",
                                 .batches = 10});
  EXPECT_EQ(result.lost, 1U);
  EXPECT_EQ(result.returned, 0U);
  EXPECT_EQ(result.workers[0].steps, 8U);
  EXPECT_EQ(result.workers[1].steps, 2U);
  EXPECT_EQ(result.workers[1].compute, milliseconds(25));
  EXPECT_EQ(result.trained, milliseconds(80));
}

// The same, but the host is back after 20 ms, at 45. Then training pauses: worker 0 computes the two leases that it has, until 60 ms. Worker 1
// joins, and each computes one of the two that are left.
TEST(Failures, WorkerReturnsAsANewMember) {
  const auto result = result_of({.settings = {"strategy.name=easgd", "strategy.tau=1"},
                                 .cluster = "[hosts.a]\ncount = 2\nstep_ms = 10\n[failures]\ndetection_s = 0.005\n"
                                            "rejoin_s = 0.02\n[loss.one]\nworker = 1\nat_s = 0.025\n",
                                 .batches = 10});
  EXPECT_EQ(result.returned, 1U);
  EXPECT_EQ(result.workers[0].steps, 7U);
  EXPECT_EQ(result.workers[1].steps, 3U);
  EXPECT_EQ(result.trained, milliseconds(70));
}

// BSP on three workers. Worker 2 dies at 25 ms, in its third step. The others end theirs at 30 ms, take their leases of the fourth round,
// wait until the loss is known at 60, and repeat the third step: 60-70. Four rounds of three take 12 of 15 samples, without worker 2's
// slices of the last two; two rounds of two take the others, the last of them across the epoch's end.
TEST(Failures, SurvivorsOfBspGoOn) {
  const auto result = result_of({.settings = {"strategy.name=bsp"},
                                 .cluster = "[hosts.a]\ncount = 3\nstep_ms = 10\n[failures]\ndetection_s = 0.035\n"
                                            "[loss.one]\nworker = 2\nat_s = 0.025\n",
                                 .workers = 3,
                                 .batches = 15});
  EXPECT_EQ(result.workers[0].steps, 6U);
  EXPECT_EQ(result.workers[1].steps, 6U);
  EXPECT_EQ(result.workers[2].steps, 2U);
  EXPECT_EQ(result.workers[0].samples, 6U);
  EXPECT_EQ(result.trained, milliseconds(20 + 40 + 40));
  EXPECT_EQ(result.workers[0].compute, milliseconds(70));  // one step twice
  EXPECT_EQ(result.workers[2].compute, milliseconds(25));
}

// Worker 2 dies at 6 ms; it asked for the first sum at 5. The others take 10 ms a step, learn of the loss at 7 and start again. BSP: the
// first two rounds had a slice of worker 2, the other 9 of 15 samples make five rounds of two: 7 ms and seven steps.
constexpr const char* kOneFast =
    "[hosts.slow]\ncount = 2\nstep_ms = 10\n[hosts.fast]\nstep_ms = 5\n[failures]\ndetection_s = 0.001\n"
    "[loss.x]\nworker = 2\nat_s = 0.006\n";

TEST(Failures, RequestsOfALostWorkerAreDropped) {
  const auto result = result_of({.settings = {"strategy.name=bsp"}, .cluster = kOneFast, .workers = 3, .batches = 15});
  EXPECT_EQ(result.lost, 1U);
  EXPECT_EQ(result.workers[0].steps, 7U);
  EXPECT_EQ(result.workers[1].steps, 7U);
  EXPECT_EQ(result.trained, milliseconds(77));
  for (const char* const strategy : {"strategy.name=pairs", "strategy.name=mixed"}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {  // varies which workers meet
      auto run = run_of({.settings = {strategy, std::string(strategy).ends_with("pairs") ? "strategy.tau=1"
                                                                                         : "strategy.group_size=3"},
                         .workers = 3,
                         .seed = seed,
                         .batches = 15});
      const auto other = simulate(run, kOneFast);
      ASSERT_TRUE(other) << strategy << ", seed " << seed << ": " << other.error().message;
      EXPECT_EQ(other->workers[0].steps, 7U);
    }
  }
}

// Two members of one exchange are lost one after the other, the second before the first loss is detected.
TEST(Failures, RequestsOfAWorkerNotYetReportedLostAreDropped) {
  const std::string more = "[loss.y]\nworker = 3\nat_s = 0.0065\n";
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{"strategy.name=bsp"},
                                             {"strategy.name=pairs", "strategy.tau=1"},
                                             {"strategy.name=mixed", "strategy.group_size=4"}}) {
    const auto run = run_of({.settings = settings, .workers = 4, .batches = 40});
    const auto result = simulate(run,
                                 "[hosts.slow]\ncount = 2\nstep_ms = 10\n[hosts.fast]\ncount = 2\nstep_ms = 5\n"
                                 "[failures]\ndetection_s = 0.001\n[loss.x]\nworker = 2\nat_s = 0.006\n" +
                                     more);
    ASSERT_TRUE(result) << settings.front() << ": " << result.error().message;
    EXPECT_EQ(result->lost, 2U);
  }
}

// With a delay the leases of an epoch end while a round is still open: a newcomer may join only after the round is closed.
TEST(Failures, NewcomerInStepJoinsWhenNoMessageIsInFlight) {
  for (const std::string fragments : {"1", "2"}) {
    auto scenario = Scenario{.settings = {"strategy.name=local_sgd", "strategy.tau=4", "strategy.delay=1",
                                          "strategy.fragments=" + fragments},
                             .workers = 5,
                             .servers = 2,
                             .floats = 100'000,
                             .batches = 5 * 7,
                             .epochs = 40};
    std::uint64_t returned = 0;
    for (scenario.seed = 1; scenario.seed <= 6; ++scenario.seed) {
      const auto result = simulate(run_of(scenario),
                                   "[hosts.a]\ncount = 5\nstep_ms = 5\nstep_sigma = 0.3\n[network]\nlatency_us = 4000\n"
                                   "gbit_per_s = 1\n[failures]\nmean_time_between_s = 1\ndetection_s = 0.02\n"
                                   "rejoin_s = 0.03\n");
      ASSERT_TRUE(result) << "fragments " << fragments << ", seed " << scenario.seed << ": " << result.error().message;
      EXPECT_EQ(result->epochs, 40U);
      returned += result->returned;
    }
    EXPECT_GT(returned, 10U);
  }
}

// A member that asked for leases before the others rejoined had rounds of its own, and waited at the end for steps that no other one takes.
TEST(Failures, WorkersInStepThatComeBackTogetherTakeTheSameSteps) {
  for (const char* const strategy : {"strategy.name=sync_easgd", "strategy.name=local_sgd", "strategy.name=ssp"}) {
    const auto run = run_of({.settings = {strategy}, .workers = 3, .batches = 36, .epochs = 2, .prefetch = 4});
    const auto result = simulate(run,
                                 "[hosts.a]\ndevices = 2\nstep_ms = 5\n[hosts.b]\nstep_ms = 5\n[failures]\n"
                                 "detection_s = 0.01\nrejoin_s = 0.02\n[loss.x]\nworker = 1\nat_s = 0.018\n");
    ASSERT_TRUE(result) << strategy << ": " << result.error().message;
    EXPECT_EQ(result->returned, 2U);
    EXPECT_EQ(result->workers[0].steps, result->workers[1].steps) << strategy;
  }
}

TEST(Failures, LossOfAllWorkersAtOnceEndsTheRun) {
  const auto result = simulate(run_of({.settings = {"strategy.name=easgd"}, .batches = 100}),
                               "[hosts.a]\ndevices = 2\nstep_ms = 5\n[failures]\ndetection_s = 0.01\n"
                               "rejoin_s = 0.02\n[loss.x]\nworker = 1\nat_s = 0.018\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "all workers are lost after 0.028 virtual seconds, which ends a run: raise failures.mean_time_between_s");
}

TEST(Failures, TimeThatOverflowsIsAnError) {
  const auto run = run_of({.settings = {"strategy.name=easgd"}, .batches = 10'000});
  const auto result = simulate(run, "[hosts.a]\ncount = 2\nstep_ms = 1e9\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, core::Errc::config);
  EXPECT_TRUE(result.error().message.starts_with("virtual time passes its range of 73 years, after 2305"))
      << result.error().message;
  const auto rare = simulate(run, "[hosts.a]\ncount = 2\nstep_ms = 1\n[failures]\nmean_time_between_s = 1e9\n");
  EXPECT_TRUE(rare) << rare.error().message;
}

// An overflow in nanoseconds once made this run end at once.
TEST(Failures, ALongTimeLimitIsNoLimit) {
  auto run = run_of({.settings = {"strategy.name=easgd"}, .batches = 10});
  run.max_seconds = 1e300;
  const auto result = simulate(run, "[hosts.a]\ncount = 2\nstep_ms = 5\n");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->epochs, 1U);
}

TEST(Failures, ARunWithoutWorkersLeftIsAnError) {
  const auto run = run_of({.settings = {"strategy.name=easgd"}, .batches = 10});
  const auto result = simulate(run,
                               "[hosts.a]\ncount = 1\ndevices = 2\nstep_ms = 10\n"
                               "[loss.one]\nworker = 1\nat_s = 0.025\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, core::Errc::peer_lost);
  EXPECT_EQ(result.error().message.substr(0, 48), "all workers are lost after 2.025 virtual seconds");
}

TEST(Failures, LossOfAnUnknownWorkerIsNamed) {
  const auto result = simulate(run_of({.settings = {"strategy.name=easgd"}}),
                               "[hosts.a]\ncount = 2\nstep_ms = 10\n[loss.one]\nworker = 2\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "cluster.toml:5: loss.one.worker = 2: there are 2 workers, from 0");
}

}  // namespace
}  // namespace troupe::sim
