#include "strategies/bsp.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::checksum;
using explore::QuadraticProblem;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

const core::OptimizerStep kSgd{.lr = 0.05F, .weight_decay = 0.01F};
const core::OptimizerStep kMomentum{
    .kind = core::OptimizerKind::momentum, .lr = 0.02F, .momentum = 0.9F, .weight_decay = 0.01F};

Vector gradient(const QuadraticProblem& quadratic, std::uint64_t lease, const Vector& x) {
  std::vector<float> at(x.begin(), x.end());
  std::vector<float> g(x.size());
  quadratic.gradient(lease, at, g);
  return {g.begin(), g.end()};
}

/// The three rules of docs/strategies/bsp.md in double precision, worker by worker. Worker w takes slice w of each batch.
Vector serial(const std::string& combine, bool average_velocity, const VirtualRunOptions& o) {
  const QuadraticProblem quadratic(o.seed, o.floats, o.noise);
  std::vector<float> start(o.floats);
  quadratic.start(start);
  const std::size_t n = o.workers;
  std::vector<Vector> x(n, Vector(start.begin(), start.end()));
  std::vector<Vector> v(n, Vector(o.floats));
  const double mu = o.optimizer.kind == core::OptimizerKind::sgd ? 0 : o.optimizer.momentum;
  for (Step step = 0; step < o.steps; ++step) {
    std::vector<Vector> g;
    for (std::size_t w = 0; w < n; ++w) g.push_back(gradient(quadratic, step * n + w, x[w]));
    for (std::size_t i = 0; i < o.floats; ++i) {
      double mean_g = 0;
      for (std::size_t w = 0; w < n; ++w) mean_g += g[w][i] / static_cast<double>(n);
      double sum_v = 0;
      double mean_x = 0;
      for (std::size_t w = 0; w < n; ++w) {
        const double used = combine == "gradients" ? mean_g : g[w][i];
        v[w][i] = mu * v[w][i] - o.optimizer.lr * (used + o.optimizer.weight_decay * x[w][i]);
        sum_v += v[w][i];
        mean_x += (x[w][i] + v[w][i]) / static_cast<double>(n);
      }
      for (std::size_t w = 0; w < n; ++w) {
        x[w][i] = combine == "gradients" ? x[w][i] + v[w][i] : combine == "updates" ? x[w][i] + sum_v : mean_x;
        if (average_velocity) v[w][i] = sum_v / static_cast<double>(n);
      }
      if (average_velocity) {
        for (std::size_t w = 1; w < n; ++w) v[w][i] = v[0][i];
      }
    }
  }
  return x[0];
}

struct BspCase {
  std::string combine;
  bool average_momentum = false;
  std::uint32_t workers = 1;
  core::OptimizerStep optimizer;
  Step steps = 12;
};

std::string toml(const BspCase& c) {
  return "[strategy]\nname = \"bsp\"\ncombine = \"" + c.combine +
         "\"\naverage_momentum = " + (c.average_momentum ? "true" : "false") + "\n";
}

std::unique_ptr<Strategy> bsp_of(const BspCase& c) {
  return made(toml(c), {.workers = c.workers, .servers = 0, .optimizer = c.optimizer});
}

std::vector<BspCase> bsp_cases() {
  std::vector<BspCase> all;
  for (const std::uint32_t workers : {1U, 2U, 4U}) {
    for (const auto& optimizer : {kSgd, kMomentum}) {
      for (const char* combine : {"gradients", "updates", "weights"})
        all.push_back({combine, false, workers, optimizer});
      all.push_back({"weights", true, workers, optimizer});
    }
  }
  return all;
}

std::string described(const BspCase& c) {
  return c.combine + (c.average_momentum ? " with velocities" : "") + ", " + std::to_string(c.workers) + " workers, " +
         (c.optimizer.momentum > 0 ? "momentum" : "sgd");
}

TEST(Bsp, GivesTheNumbersOfASerialComputation) {
  for (const auto& c : bsp_cases()) {
    for (const Step steps : {Step{1}, Step{12}}) {  // one step: the sum is applied in the step that computed it
      SCOPED_TRACE(described(c) + ", " + std::to_string(steps) + " steps");
      VirtualRun run(*bsp_of(c), {.workers = c.workers, .steps = steps, .seed = 11, .optimizer = c.optimizer});
      run.execute();
      const auto expected = serial(c.combine, c.average_momentum, run.options());
      const auto params = run.worker(0).params();
      for (std::size_t i = 0; i < params.size(); ++i)
        ASSERT_NEAR(params[i], expected[i], 2e-5) << i;  // 12 steps in float32
    }
  }
}

TEST(Bsp, ReplicasAreBitEqualAfterEveryRun) {
  for (const auto& c : bsp_cases()) {
    SCOPED_TRACE(described(c));
    VirtualRun run(*bsp_of(c),
                   {.workers = c.workers, .seed = 3, .delays = explore::Delays::extreme, .optimizer = c.optimizer});
    run.execute();
    for (WorkerId w = 1; w < c.workers; ++w)
      EXPECT_EQ(checksum(run.worker(w).params()), checksum(run.worker(0).params()));
    EXPECT_EQ(run.leases_done(), run.options().steps * c.workers);
    EXPECT_LT(run.quadratic().loss(run.worker(0).params()), 3.0) << "it trains: the start is above 7";
  }
}

TEST(Bsp, TheScheduleChangesNothing) {
  for (const auto& c : bsp_cases()) {
    SCOPED_TRACE(described(c));
    const auto numbers = [&](explore::Delays delays) {
      VirtualRun run(*bsp_of(c),
                     {.workers = c.workers, .seed = 4, .delays = delays, .optimizer = c.optimizer, .slowdown = {5}});
      run.execute();
      return checksum(run.worker(0).params());
    };
    EXPECT_EQ(numbers(explore::Delays::even), numbers(explore::Delays::extreme));
  }
}

TEST(Bsp, BucketsChangeNothingButTheNumberOfReductions) {
  const BspCase c{"gradients", false, 3, kMomentum};
  std::vector<std::uint64_t> results;
  for (const int buckets : {0, 1, 3, 5}) {
    VirtualRun run(
        *bsp_of(c),
        {.workers = c.workers, .delays = explore::Delays::extreme, .optimizer = c.optimizer, .buckets = buckets});
    run.execute();
    results.push_back(checksum(run.worker(2).params()));
    EXPECT_EQ(run.collectives().performed(), run.options().steps * static_cast<Step>(std::max(buckets, 1)));
  }
  for (const auto result : results) EXPECT_EQ(result, results[0]);
}

TEST(Bsp, OnlyGradientsAreReducedDuringTheStep) {
  for (const char* combine : {"updates", "weights"}) {
    VirtualRun run(*bsp_of({combine, false, 2, kSgd}), {.workers = 2, .optimizer = kSgd});
    run.execute();
    EXPECT_EQ(run.collectives().performed(), run.options().steps) << combine;
  }
  VirtualRun both(*bsp_of({"weights", true, 2, kMomentum}), {.workers = 2, .optimizer = kMomentum});
  both.execute();
  EXPECT_EQ(both.collectives().performed(), 2 * both.options().steps);
}

/// With a velocity of its own each worker has its own optimizer state, and a checkpoint must keep all of them.
TEST(Bsp, DeclaresWhatACheckpointMustKeep) {
  const auto keeps = [](const BspCase& c) { return bsp_of(c)->needs().worker_state; };
  EXPECT_EQ(keeps({"gradients", false, 2, kMomentum}), WorkerState::replicated);
  EXPECT_EQ(keeps({"updates", false, 2, kMomentum}), WorkerState::per_worker);
  EXPECT_EQ(keeps({"weights", false, 2, kMomentum}), WorkerState::per_worker);
  EXPECT_EQ(keeps({"weights", true, 2, kMomentum}), WorkerState::replicated);
  EXPECT_EQ(keeps({"updates", false, 2, kSgd}), WorkerState::replicated);
  const auto whole = [](const BspCase& c) { return bsp_of(c)->needs().whole_steps; };
  EXPECT_TRUE(whole({"gradients", false, 2, kMomentum}));
  EXPECT_TRUE(whole({"updates", false, 2, kSgd}));
  EXPECT_TRUE(whole({"weights", false, 2, kSgd}));
  EXPECT_FALSE(whole({"weights", true, 2, kMomentum}));   // velocities change before they are averaged
  EXPECT_FALSE(whole({"updates", false, 2, kMomentum}));  // a lost worker's velocity is lost
  for (const auto& c : bsp_cases()) {
    if (keeps(c) != WorkerState::replicated || c.optimizer.kind == core::OptimizerKind::sgd) continue;
    VirtualRun run(*bsp_of(c), {.workers = c.workers, .optimizer = c.optimizer});
    run.execute();
    for (WorkerId w = 1; w < c.workers; ++w) {
      EXPECT_EQ(checksum(run.worker(w).peek(kVelocity)), checksum(run.worker(0).peek(kVelocity))) << described(c);
    }
  }
}

TEST(Bsp, NeedsAGroupAndNoServer) {
  const auto strategy = bsp_of({"gradients", false, 2, kSgd});
  EXPECT_TRUE(strategy->needs().group);
  EXPECT_TRUE(strategy->needs().in_step);
  EXPECT_FALSE(strategy->needs().servers);
  EXPECT_EQ(strategy->needs().model, ModelHome::any_worker);
  EXPECT_EQ(strategy->server(), nullptr);
}

}  // namespace
}  // namespace troupe::strategies
