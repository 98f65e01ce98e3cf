/// Backup workers: a step is the mean of its own gradients only, no worker computes with shards of different steps, and no worker
/// waits for the slowest b.
#include "strategies/bsp_backup.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::ServerKernel;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

std::unique_ptr<Strategy> with_backup(std::uint32_t backup, const VirtualRunOptions& shape) {
  return made("[strategy]\nname = \"bsp\"\nbackup = " + std::to_string(backup),
              {.workers = shape.workers, .servers = shape.servers, .optimizer = shape.optimizer});
}

VirtualRunOptions random_options(std::uint64_t seed) {
  auto options = random_shape({}, seed);
  options.workers = std::max(options.workers, 2U);
  options.steps = 12;
  options.slowdown = {1, 3, 0.5, 8, 1};
  return options;
}

/// The shards after each step, and the members of the step.
struct History {
  explicit History(VirtualRunOptions& options) {
    options.on_server_kernel = [this](const ServerKernel& kernel) {
      auto& shard = shards[kernel.shard];
      if (shard.centers.empty()) shard.centers.push_back(kernel.center_before);
      if (kernel.call.kernel == KernelName::axpy) shard.open.emplace_back(kernel.request, kernel.payload_before);
      if (!writes(kernel.call, kCenter)) return;
      shard.centers.emplace_back(kernel.center.begin(), kernel.center.end());
      shard.steps.push_back(std::exchange(shard.open, {}));
    };
  }
  struct Shard {
    using Gradients = std::vector<std::pair<RequestId, std::vector<float>>>;
    std::vector<std::vector<float>> centers;  // after so many steps
    std::vector<Gradients> steps;
    Gradients open;
  };
  std::map<ShardId, Shard> shards;
};

std::map<std::pair<ShardId, RequestId>, Request> requests_of(VirtualRun& run) {
  std::map<std::pair<ShardId, RequestId>, Request> requests;
  for (const auto& [shard, event] : run.trace().server_events())
    if (const auto* request = std::get_if<Request>(&event)) requests[{shard, request->id}] = *request;
  return requests;
}

TEST(BspBackup, EachStepIsTheMeanOfEnoughGradientsOfThatStepAndOfNoOther) {
  std::uint64_t dropped = 0;
  std::uint64_t mixed = 0;  // steps that two shards closed with different members
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    auto options = random_options(seed);
    options.optimizer = {.kind = core::OptimizerKind::momentum, .lr = 0.02F, .momentum = 0.9F};
    const std::uint32_t backup = 1 + static_cast<std::uint32_t>(seed) % (options.workers - 1);
    SCOPED_TRACE(std::to_string(options.workers) + " workers, backup " + std::to_string(backup) + ", seed " +
                 std::to_string(seed));
    History history(options);
    VirtualRun run(*with_backup(backup, options), options);
    run.execute();
    const auto requests = requests_of(run);
    std::map<Step, std::set<std::set<WorkerId>>> members;
    for (ShardId s = 0; s < options.servers; ++s) {
      const auto& shard = history.shards[s];
      ASSERT_EQ(shard.steps.size(), options.steps);
      EXPECT_EQ(run.server(s).host().version(), options.steps);
      Vector v(shard.centers[0].size());
      const auto range = explore::cut(options.floats, options.servers, s);
      for (Step step = 0; step < options.steps; ++step) {
        std::vector<float> whole;  // the parameters of this step
        for (const auto& [other, of] : history.shards)
          whole.insert(whole.end(), of.centers[step].begin(), of.centers[step].end());
        Vector mean(v.size());
        std::set<WorkerId> who;
        WorkerId last = 0;
        for (const auto& [id, payload] : shard.steps[step]) {
          const auto& request = requests.at({s, id});
          EXPECT_EQ(request.clock, step + 1) << "a gradient of another step";
          EXPECT_TRUE(who.empty() || last < request.worker) << "in rank order";
          who.insert(last = request.worker);
          std::vector<float> g(options.floats);
          run.quadratic().gradient(step * options.workers + request.worker, whole, g);
          for (std::size_t i = 0; i < mean.size(); ++i) {
            ASSERT_EQ(payload[i], g[range.offset + i]) << "not computed with this step's parameters";
            mean[i] += payload[i] / static_cast<double>(shard.steps[step].size());
          }
        }
        members[step].insert(who);
        EXPECT_LE(who.size(), options.workers);
        for (std::size_t i = 0; i < v.size(); ++i) {
          v[i] = 0.9 * v[i] - 0.02 * mean[i];
          ASSERT_NEAR(shard.centers[step + 1][i], shard.centers[step][i] + v[i], 1e-4);
        }
      }
    }
    for (const auto& [step, sets] : members) mixed += sets.size() > 1 ? 1 : 0;
    for (WorkerId w = 0; w < options.workers; ++w) {
      EXPECT_EQ(run.worker(w).host().totals().staleness_max, 0U);
      EXPECT_EQ(run.worker(w).host().steps(), options.steps) << "every worker ends at the last step of the run";
    }
    dropped += run.trace().drops().size();
    for (const auto& [request, why] : run.trace().drops())
      EXPECT_EQ(why, "step " + std::to_string(request.clock - 1) + " was complete without it");
    if (HasFailure()) return;
  }
  EXPECT_GT(dropped, 500U) << "hardly anyone was ever late: this tests nothing";
  EXPECT_GT(mixed, 50U) << "shards always agreed: this tests nothing";
}

/// While no worker has left, a step closes with exactly N − b gradients.
TEST(BspBackup, AStepWaitsForAllButItsBackupWorkers) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    auto options = random_options(seed);
    options.workers = 5;
    const std::uint32_t backup = 1 + seed % 4;
    History history(options);
    VirtualRun run(*with_backup(backup, options), options);
    run.execute();
    for (const auto& [s, shard] : history.shards) {
      for (Step step = 0; step + 1 < options.steps; ++step)  // in the last one others may have left already
        EXPECT_EQ(shard.steps[step].size(), 5 - backup) << "step " << step << ", seed " << seed;
    }
  }
}

TEST(BspBackup, EveryStepIsComputedWithTheParametersOfThatStepInAllShards) {
  std::uint64_t looks = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto options = random_options(seed);
    options.servers = 3;
    History history(options);
    std::vector<float> start(options.floats);
    explore::QuadraticProblem(options.seed, options.floats, options.noise).start(start);
    options.after_event = [&](const VirtualRun& run) {
      for (WorkerId w = 0; w < options.workers; ++w) {
        const auto& worker = run.worker(w);
        if (!worker.host().computing()) continue;
        ++looks;
        const Step steps = worker.host().steps();
        for (ShardId s = 0; s < options.servers; ++s) {
          const auto range = explore::cut(options.floats, options.servers, s);
          const float* expected = steps == 0 ? &start[range.offset] : history.shards[s].centers.at(steps).data();
          ASSERT_TRUE(std::equal(expected, expected + range.count, &worker.params()[range.offset]))
              << "worker " << w << ", step " << steps << ", shard " << s << ", seed " << seed;
        }
      }
    };
    VirtualRun run(*with_backup(1, options), options);
    run.execute();
    if (HasFailure()) return;
  }
  EXPECT_GT(looks, 10'000U);
}

TEST(BspBackup, AStepDoesNotWaitForItsBackupWorkers) {
  const auto run = [](std::uint32_t backup) {
    const VirtualRunOptions options{.workers = 3, .servers = 2, .steps = 40, .slowdown = {1, 1, 10}};
    auto run = std::make_unique<VirtualRun>(*with_backup(backup, options), options);
    run->execute();
    return run;
  };
  const auto one = run(1);
  EXPECT_LT(one->worker(0).host().totals().wait, std::chrono::milliseconds(40)) << "the other one's steps";
  const auto& slow = one->worker(2).host();
  EXPECT_GT(slow.totals().passed, 30U) << "nearly all steps are over before it has taken one";
  EXPECT_EQ(slow.steps(), 40U);
  EXPECT_EQ(slow.totals().dropped, 40 - slow.totals().passed) << "what it computes always comes too late";
  EXPECT_LT(one->queue().now(), std::chrono::milliseconds(150));
}

/// Each worker clips its gradient before the average: the norm needs the whole gradient, which no single server has.
TEST(BspBackup, WorkersClipAndServersDoNot) {
  VirtualRunOptions options{.workers = 2, .servers = 2, .optimizer = {.lr = 0.05F, .clip_norm = 0.5F}};
  double largest = 0;
  std::map<std::pair<ShardId, RequestId>, double> norms;
  options.on_server_kernel = [&](const ServerKernel& kernel) {
    EXPECT_EQ(kernel.call.optimizer.clip_norm, 0);
    if (kernel.call.kernel != KernelName::axpy) return;
    for (const float g : kernel.payload_before) norms[{kernel.shard, kernel.request}] += double{g} * double{g};
    largest = std::max(largest, norms[{kernel.shard, kernel.request}]);
  };
  VirtualRun run(*with_backup(1, options), options);
  run.execute();
  EXPECT_LE(largest, 0.25 + 1e-6);
  EXPECT_GT(largest, 0.05) << "the quadratic problem is steep at the start";
}

TEST(BspBackup, RunContinuesWithoutLostMembers) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const std::uint32_t backup : {1U, 2U, 3U}) {
      SCOPED_TRACE(std::to_string(backup) + ", seed " + std::to_string(seed));
      VirtualRunOptions options{.workers = 4,
                                .servers = 3,
                                .seed = seed,
                                .delays = Delays::extreme,
                                .losses = {{1, std::chrono::milliseconds(6)}, {3, std::chrono::milliseconds(9)}}};
      if (seed % 3 == 0) options.losses.push_back({0, std::chrono::milliseconds(14)});
      VirtualRun run(*with_backup(backup, options), options);
      ASSERT_NO_THROW(run.execute());
      EXPECT_GE(run.worker(2).host().steps(), options.steps);
    }
  }
}

/// The last gradient of a step reached one shard and was lost on its way to the other. Without this rule a worker would block there.
TEST(BspBackup, StepThatNoGradientCanReachIsClosedWithoutOne) {
  const Membership both{0, {0, 1}};
  BackupServer server(1, {.lr = 0.1F});
  ServerActions then;
  const Request pull{.id = 7, .worker = 1, .exchange = 3 << 16 | 1, .kind = Transfer::pull, .clock = 2};
  server.on(Request{.id = 6, .worker = 0, .exchange = 2 << 16, .clock = 2}, {0, both, 0}, then);
  then.clear();
  server.on(pull, {0, both, 1}, then);
  EXPECT_EQ(then.list(), (std::vector<ServerAction>{Hold{7}})) << "worker 0 may still send the gradient of step 2";
  then.clear();
  server.on(MembershipChanged{{1, {1}}}, {0, {1, {1}}, 1}, then);
  EXPECT_EQ(then.list(), (std::vector<ServerAction>{Apply{copy(kPayload, kCenter), {7}}, Reply{7, 3}}));
}

/// No worker can have computed a step before the previous one was complete: such a gradient takes part in no step.
TEST(BspBackup, GradientOfAStepThatNoWorkerHasReachedIsDropped) {
  constexpr Step kFar = Step{1} << 35;
  BackupServer server(1, {.lr = 0.1F});
  const ServerContext three{0, {0, {0, 1, 2}}, 0};
  const auto told = [&](RequestId id, WorkerId worker, Step clock) {
    ServerActions then;
    server.on(Request{.id = id, .worker = worker, .exchange = clock << 16, .clock = clock}, three, then);
    return then.list();
  };
  EXPECT_EQ(told(9, 2, kFar), (std::vector<ServerAction>{Drop{9, "step 0 is not complete"}}));
  EXPECT_EQ(told(1, 0, 1), (std::vector<ServerAction>{Hold{1}}));
  EXPECT_EQ(told(2, 1, 1).back(), ServerAction(Reply{2, 1})) << "two of three close step 1";
  for (const Step ahead : {Step{3}, kFar})
    EXPECT_EQ(told(2 + ahead, 2, ahead), (std::vector<ServerAction>{Drop{2 + ahead, "step 1 is not complete"}}));
  EXPECT_EQ(told(4, 0, 2), (std::vector<ServerAction>{Hold{4}})) << "step 2 is the next, and has one gradient";
  EXPECT_EQ(told(6, 1, 2).back(), ServerAction(Reply{6, 2}));
}

/// Another strategy has begun this run: its workers continue their step count, but a server has no count to continue.
TEST(BspBackup, NewServerTakesTheWorkersStepWhenAllOfThemAsk) {
  BackupServer server(1, {.lr = 0.1F});
  const ServerContext two{0, {0, {0, 1}}, 0};
  const auto told = [&](const Request& request) {
    ServerActions then;
    server.on(request, two, then);
    return then.list();
  };
  for (const WorkerId worker : {0U, 1U})
    EXPECT_EQ(told({.id = worker, .worker = worker, .exchange = 6 << 16, .clock = 6}),
              (std::vector<ServerAction>{Drop{worker, "step 0 is not complete"}}));
  EXPECT_EQ(told({.id = 2, .worker = 0, .exchange = 6 << 16 | 1, .kind = Transfer::pull, .clock = 6}),
            (std::vector<ServerAction>{Hold{2}}));
  const auto last = told({.id = 3, .worker = 1, .exchange = 6 << 16 | 1, .kind = Transfer::pull, .clock = 6});
  EXPECT_EQ(last.back(), ServerAction(Reply{3, 6}));
  EXPECT_EQ(told({.id = 4, .worker = 0, .exchange = 7 << 16, .clock = 7}).back(), ServerAction(Reply{4, 7}));
}

/// A pull may name any number of steps: they are not closed one by one.
TEST(BspBackup, StepsWithoutWaitingWorkersCloseAtOnce) {
  constexpr Step kFar = Step{1} << 35;
  BackupServer server(1, {.lr = 0.1F});
  ServerActions then;
  const Membership alone{0, {0}};
  server.on(Request{.id = 1, .worker = 0, .exchange = kFar << 16 | 1, .kind = Transfer::pull, .clock = 1},
            {0, alone, 0}, then);
  std::vector<Reply> replies;
  for (const auto& action : then.list())
    if (const auto* reply = std::get_if<Reply>(&action)) replies.push_back(*reply);
  EXPECT_EQ(replies, (std::vector<Reply>{{.request = 1, .min_clock = kFar}}));
}

TEST(BspBackup, InvalidOptionsAreRefused) {
  const auto refusal = [](const std::string& options, std::uint32_t workers) {
    const auto result = try_make("[strategy]\nname = \"bsp\"\n" + options, {.workers = workers});
    EXPECT_FALSE(result) << options;
    return result ? std::string{} : result.error().message;
  };
  EXPECT_EQ(refusal("backup = 2", 2),
            "test.toml:3: strategy.backup = 2 leaves no worker to wait for: cluster.workers is 2");
  EXPECT_NE(refusal("backup = 1\ncombine = \"weights\"", 3).find("strategy.combine = \"gradients\""),
            std::string::npos);
  const auto needs = with_backup(1, {.optimizer = {.kind = core::OptimizerKind::adam}})->needs();
  EXPECT_TRUE(needs.servers);
  EXPECT_TRUE(needs.in_step);
  EXPECT_FALSE(needs.group);
  EXPECT_EQ(needs.server_states, 3);
  EXPECT_EQ(needs.server_state_of, "adam");
}

}  // namespace
}  // namespace troupe::strategies
