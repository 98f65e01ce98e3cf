/// Downpour in whole runs: every push is applied exactly once, by the rule of the paper, and the server's optimizers equal
/// those of a serial program.
#include "strategies/downpour.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "strategies/host/server_host.hpp"
#include "strategies/host/worker_host.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::ServerKernel;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

const core::OptimizerStep kRun{.lr = 0.05F, .momentum = 0.9F, .weight_decay = 0.01F, .decay = 0.99F, .epsilon = 1e-3F};

std::unique_ptr<Strategy> downpour_with(const std::string& options, std::uint32_t workers = 3) {
  return made("[strategy]\nname = \"downpour\"\n" + options, {.workers = workers, .servers = 2, .optimizer = kRun});
}

/// One server optimizer on one shard, in double precision, push by push.
class SerialOptimizer {
 public:
  SerialOptimizer(std::string name, Vector start) : name_(std::move(name)), x(std::move(start)) {
    first_.resize(x.size());
    second_.resize(x.size());
  }
  void push(const std::vector<float>& payload, double lr) {
    ++t_;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double g = payload[i] + double{kRun.weight_decay} * x[i];
      if (name_ == "none") {
        x[i] += payload[i];
      } else if (name_ == "sgd") {
        x[i] -= lr * g;
      } else if (name_ == "momentum") {
        first_[i] = 0.9 * first_[i] - lr * g;
        x[i] += first_[i];
      } else if (name_ == "rmsprop") {
        first_[i] = 0.99 * first_[i] + 0.01 * g * g;
        x[i] -= lr * g / (std::sqrt(first_[i]) + 1e-3);
      } else if (name_ == "adagrad") {
        first_[i] += g * g;
        x[i] -= lr * g / (std::sqrt(first_[i]) + 1e-3);
      } else {
        first_[i] = 0.9 * first_[i] + 0.1 * g;
        second_[i] = 0.99 * second_[i] + 0.01 * g * g;
        const double m = first_[i] / (1 - std::pow(0.9, t_));
        const double r = second_[i] / (1 - std::pow(0.99, t_));
        x[i] -= lr * m / (std::sqrt(r) + 1e-3);
      }
    }
  }

 private:
  std::string name_;

 public:
  Vector x;

 private:
  Vector first_, second_;
  int t_ = 0;
};

TEST(Downpour, ServerOptimizersAreTheSerialOnesInTheOrderOfTheJournal) {
  for (const std::string name : {"none", "sgd", "momentum", "rmsprop", "adagrad", "adam"}) {
    for (const std::string overlap : {"off", "skip"}) {
      SCOPED_TRACE(name + ", overlap " + overlap);
      std::map<ShardId, SerialOptimizer> serial;
      std::uint64_t pushes = 0;
      VirtualRunOptions options{
          .workers = 3, .servers = 2, .steps = 12, .seed = 5, .delays = Delays::extreme, .optimizer = kRun};
      options.on_server_kernel = [&](const ServerKernel& kernel) {
        if (!writes(kernel.call, kCenter)) return;
        ++pushes;
        auto& shard =
            serial.try_emplace(kernel.shard, name, Vector(kernel.center_before.begin(), kernel.center_before.end()))
                .first->second;
        shard.push(kernel.payload_before, kRun.lr);
        for (std::size_t i = 0; i < shard.x.size(); ++i) ASSERT_NEAR(kernel.center[i], shard.x[i], 1e-4) << i;
      };
      VirtualRun run(
          *downpour_with("n_push = 2\nn_fetch = 3\nserver_optimizer = \"" + name + "\"\noverlap = \"" + overlap + "\""),
          options);
      run.execute();
      EXPECT_GT(pushes, 0U);
      for (ShardId s = 0; s < 2; ++s) EXPECT_EQ(run.server(s).host().version() * 2, pushes);
    }
  }
}

/// Without a server optimizer the centre is its start plus all steps of all workers, each counted once, whatever was
/// skipped, delayed or unsent at the end.
TEST(Downpour, TheCentreIsTheSumOfAllStepsThatWereTaken) {
  for (const std::string options :
       {"", "n_push = 3", "n_push = 3\nn_fetch = 2\noverlap = \"skip\"", "overlap = \"skip\""}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(options + ", seed " + std::to_string(seed));
      VirtualRunOptions with{.workers = 4, .servers = 2, .steps = 10, .seed = seed, .delays = Delays::extreme};
      with.on_server_kernel = [&](const ServerKernel& kernel) {
        if (!writes(kernel.call, kCenter)) return;
        for (std::size_t i = 0; i < kernel.center.size(); ++i)
          ASSERT_FLOAT_EQ(kernel.center[i], kernel.center_before[i] + kernel.payload_before[i]);
      };
      VirtualRun run(*made("[strategy]\nname = \"downpour\"\n" + options, {.workers = 4, .servers = 2}), with);
      run.execute();
      std::map<std::pair<WorkerId, ShardId>, int> pushes;
      for (const auto& [shard, event] : run.trace().server_events()) {
        const auto* request = std::get_if<Request>(&event);
        if (request && request->kind == Transfer::push) ++pushes[{request->worker, shard}];
      }
      for (WorkerId w = 0; w < 4; ++w) {
        EXPECT_EQ((pushes[{w, 0}]), (pushes[{w, 1}]));
        if (options.empty()) continue;  // no sum is kept
        for (const float left : run.worker(w).peek(kAcc)) EXPECT_EQ(left, 0) << "a step was not handed in";
      }
    }
  }
}

/// A worker that never fetches ends at its start plus all of its steps, so the centre is the start plus all workers' moves.
TEST(Downpour, EveryStepReachesTheCentreOnce) {
  for (const std::string options : {"", "n_push = 3", "overlap = \"skip\"", "n_push = 3\noverlap = \"skip\""}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(options + ", seed " + std::to_string(seed));
      VirtualRun run(*made("[strategy]\nname = \"downpour\"\nn_fetch = 1000\n" + options, {.workers = 4, .servers = 2}),
                     {.workers = 4, .servers = 2, .steps = 10, .seed = seed, .delays = Delays::extreme});
      run.execute();
      std::vector<float> start(run.options().floats);
      run.quadratic().start(start);
      const auto center = run.center();
      for (std::size_t i = 0; i < start.size(); ++i) {
        double moved = 0;
        for (WorkerId w = 0; w < 4; ++w) moved += double{run.worker(w).params()[i]} - start[i];
        ASSERT_NEAR(center[i], start[i] + moved, 2e-5) << i;
      }
    }
  }
}

TEST(Downpour, OneWorkerFollowsTheRuleStepByStep) {
  // One shard, immediate answers: x and c by hand. n_push = 2, n_fetch = 3, no overlap, plain SGD.
  VirtualRunOptions options{.workers = 1, .servers = 1, .steps = 11, .optimizer = {.lr = 0.05F}};
  VirtualRun run(*made("[strategy]\nname = \"downpour\"\nn_push = 2\nn_fetch = 3", {.workers = 1}), options);
  run.execute();
  std::vector<float> start(options.floats);
  run.quadratic().start(start);
  Vector x(start.begin(), start.end());
  Vector c = x;
  Vector acc(x.size());
  for (Step step = 0; step < 11; ++step) {
    std::vector<float> g(x.size());
    run.quadratic().gradient(step, std::vector<float>(x.begin(), x.end()), g);
    const bool push = (step + 1) % 2 == 0 || step == 10;  // at the end the rest
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double move = -0.05 * g[i];
      x[i] += move;
      acc[i] += move;
      if (push) c[i] += acc[i], acc[i] = 0;
      if ((step + 1) % 3 == 0) x[i] = c[i];
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(run.center()[i], c[i], 1e-5);
    ASSERT_NEAR(run.worker(0).params()[i], x[i], 1e-5);
  }
}

// ---- single events

TEST(Downpour, AStalePushCountsLessWhenAsked) {
  NotingServerPort port;
  ServerHost host(std::make_unique<DownpourServer>(std::nullopt, true), port, {0, {0, {0, 1}}, 9});
  host.request({.id = 1, .kind = Transfer::push, .version = 5});   // staleness 4
  host.request({.id = 2, .kind = Transfer::push, .version = 10});  // staleness 0: no division by it
  ASSERT_EQ(port.kernels.size(), 2U);
  EXPECT_EQ(port.kernels[0].a, 0.25F);
  EXPECT_EQ(port.kernels[1].a, 1.0F);
}

TEST(Downpour, ServerStepsWithTheWorkersRateOverStaleness) {
  NotingServerPort port;
  ServerHost host(std::make_unique<DownpourServer>(core::OptimizerStep{.kind = core::OptimizerKind::adam}, true), port,
                  {0, {0, {0}}, 6});
  host.request({.id = 1, .kind = Transfer::push, .version = 4, .lr = 0.5F});
  ASSERT_EQ(port.kernels.size(), 1U);
  EXPECT_EQ(port.kernels[0].optimizer.lr, 0.25F);
  EXPECT_EQ(port.kernels[0].optimizer.t, 7U);
}

TEST(Downpour, RawGradientsAreClippedByTheWorker) {
  NotingPorts ports;
  WorkerHost host(std::make_unique<DownpourWorker>(DownpourRule{.local_steps = false}), {ports, &ports},
                  {.membership = {0, {0}}});
  host.start(0);
  host.step_done(0, {.clip_norm = 1});
  ASSERT_FALSE(ports.kernels.empty());
  EXPECT_EQ(ports.kernels[0].kernel, KernelName::clip);
  EXPECT_EQ(ports.kernels[0].optimizer.clip_norm, 1.0F);
}

TEST(Downpour, PushCarriesTheVersionThatItsGradientSaw) {
  NotingPorts ports;
  WorkerHost host(std::make_unique<DownpourWorker>(DownpourRule{.overlap = true}), {ports, &ports},
                  {.membership = {0, {0}}});
  host.start(0);
  host.step_done(0, {});                                    // push 0, fetch 1
  host.replied({.shard = 0, .exchange = 0, .version = 1});  // both arrive during the second step,
  host.replied({.shard = 0, .exchange = 1, .version = 1});  // which has begun on version 0
  host.step_done(0, {});
  ASSERT_EQ(ports.requests.size(), 4U);
  EXPECT_EQ(ports.requests[2].request.version, 0U);
  host.replied({.shard = 0, .exchange = 2, .version = 2});
  host.step_done(0, {});  // the third was computed on version 1
  EXPECT_EQ(ports.requests[4].request.version, 1U);
}

TEST(Downpour, WithOverlapNoWorkerWaitsForAnAnswer) {
  NotingPorts ports;
  WorkerHost host(std::make_unique<DownpourWorker>(DownpourRule{.overlap = true}), {ports, &ports},
                  {.membership = {0, {0}}});
  host.start(0);
  for (int step = 0; step < 3; ++step) host.step_done(0, {});
  EXPECT_EQ(ports.requests.size(), 2U);  // one push, one fetch
  EXPECT_EQ(host.totals().skipped, 4U);
  EXPECT_TRUE(host.computing());
}

}  // namespace
}  // namespace troupe::strategies
