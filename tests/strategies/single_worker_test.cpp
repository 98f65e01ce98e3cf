/// With one worker there are no other members: every strategy must train as plain SGD does, up to rounding.
#include <map>

#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::VirtualRun;
using explore::VirtualRunOptions;

/// Strategies and options under which one worker's steps are the centre's. A new strategy adds its lines here.
const std::multimap<std::string, std::string>& plain() {
  static const std::multimap<std::string, std::string> all{
      {"bsp", ""},
      {"bsp", "combine = \"updates\""},
      {"bsp", "combine = \"weights\""},
      {"easgd", "tau = 1\nalpha_worker = 0\nalpha_server = 1"},
      {"eamsgd", "tau = 1\nalpha_worker = 0\nalpha_server = 1"},
      {"sync_easgd", "tau = 100"},  // never in a run this short: with one worker the two only swap places
      {"downpour", ""},
      {"downpour", "n_push = 4\nn_fetch = 4"},
      {"downpour", "server_optimizer = \"sgd\""},
      {"ssp", "s = 0"},
      {"ssp", "s = 3\nsteps_per_clock = 2"},
      {"ssp", "s = 3\noverlap = \"wait\""},
      {"local_sgd", "tau = 3"},
      {"local_sgd", "tau = 6\nfragments = 3\ndelay = 1"},
      {"diloco", "tau = 5\nouter_lr = 1\nouter_momentum = 0"},
      {"mixed", ""},
      {"mixed", "inner = \"ssp\""},
      {"mixed", "inner = \"easgd\"\ntau = 1\nalpha_worker = 0\nalpha_server = 1"},
      {"gossip", "p = 1"},
      {"pairs", "tau = 1"},
  };
  return all;
}

core::OptimizerStep optimizer_for(const std::string& strategy) {
  if (const auto kind = find(strategy)->local_optimizer) return {.kind = *kind, .lr = 0.05F, .momentum = 0};
  return {.lr = 0.05F, .weight_decay = 0.01F};
}

/// x ← x − lr (g + λ x) in double precision.
std::vector<double> serial(const VirtualRun& run) {
  const auto& options = run.options();
  std::vector<float> start(options.floats);
  run.quadratic().start(start);
  std::vector<double> x(start.begin(), start.end());
  for (Step step = 0; step < options.steps; ++step) {
    const std::vector<float> at(x.begin(), x.end());
    std::vector<float> g(x.size());
    run.quadratic().gradient(step, at, g);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] -= double{options.optimizer.lr} * (g[i] + double{options.optimizer.weight_decay} * x[i]);
  }
  return x;
}

TEST(SingleWorker, EveryStrategyIsPlainSgd) {
  for (const auto& row : registry()) EXPECT_GT(plain().count(row.name), 0U) << row.name;
  for (const auto& [name, options] : plain()) {
    SCOPED_TRACE(name + ", " + options);
    const auto optimizer = optimizer_for(name);
    const auto strategy =
        made("[strategy]\nname = \"" + name + "\"\n" + options, {.workers = 1, .servers = 3, .optimizer = optimizer});
    VirtualRun run(
        *strategy,
        {.workers = 1, .servers = 3, .steps = 24, .delays = explore::Delays::extreme, .optimizer = optimizer});
    run.execute();
    const auto expected = serial(run);
    const auto center = strategy->needs().servers && name != "sync_easgd" ? run.center() : std::vector<float>{};
    const auto params = run.worker(0).params();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(params[i], expected[i], 2e-5) << i;  // 24 steps in float32
      if (!center.empty()) {
        ASSERT_NEAR(center[i], expected[i], 2e-5) << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::strategies
