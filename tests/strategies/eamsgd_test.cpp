/// EAMSGD exchanges x, never the look-ahead x + μ v.
#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::VirtualRun;
using Vector = std::vector<double>;

constexpr core::OptimizerStep kNesterov{.kind = core::OptimizerKind::nesterov, .lr = 0.03F, .momentum = 0.75F};

TEST(Eamsgd, OneWorkerAndTheCentreFollowThePapersEquations) {
  constexpr Step kTau = 3;
  const auto strategy = made("[strategy]\nname = \"eamsgd\"\ntau = 3\nalpha_worker = 0.5\nalpha_server = 0.25",
                             {.workers = 1, .servers = 2, .optimizer = kNesterov});
  VirtualRun run(*strategy,
                 {.workers = 1, .servers = 2, .steps = 20, .delays = Delays::extreme, .optimizer = kNesterov});
  run.execute();
  std::vector<float> start(run.options().floats);
  run.quadratic().start(start);
  Vector x(start.begin(), start.end());
  Vector c = x;
  Vector v(x.size());
  for (Step step = 0; step < 20; ++step) {
    std::vector<float> ahead(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) ahead[i] = static_cast<float>(x[i] + 0.75 * v[i]);
    std::vector<float> g(x.size());
    run.quadratic().gradient(step, ahead, g);
    for (std::size_t i = 0; i < x.size(); ++i) {
      v[i] = 0.75 * v[i] - double{kNesterov.lr} * g[i];
      x[i] += v[i];
      if ((step + 1) % kTau != 0) continue;
      const double d = x[i] - c[i];
      x[i] -= 0.5 * d;
      c[i] += 0.25 * d;
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(run.center()[i], c[i], 2e-5) << i;
    ASSERT_NEAR(run.worker(0).params()[i], x[i] + 0.75 * v[i], 2e-5) << i;
  }
}

TEST(Eamsgd, OverlapSendsXToo) {
  // One exchange at the first step: c moves by alpha (x − c) with x = start + v, v = −lr g, without the look-ahead.
  const auto strategy = made("[strategy]\nname = \"eamsgd\"\ntau = 1\nalpha = 0.5\noverlap = \"skip\"",
                             {.workers = 1, .servers = 1, .optimizer = kNesterov});
  std::vector<float> sent;
  explore::VirtualRunOptions options{.workers = 1, .servers = 1, .steps = 3, .optimizer = kNesterov};
  options.on_server_kernel = [&](const explore::ServerKernel& kernel) {
    if (sent.empty()) sent = kernel.payload_before;
  };
  VirtualRun run(*strategy, options);
  run.execute();
  std::vector<float> start(run.options().floats);
  run.quadratic().start(start);
  std::vector<float> g(start.size());
  run.quadratic().gradient(0, start, g);
  for (std::size_t i = 0; i < start.size(); ++i) ASSERT_NEAR(sent[i], start[i] - kNesterov.lr * g[i], 1e-6);
}

TEST(Eamsgd, OtherLocalStepsAreRefused) {
  const auto result = try_make("[strategy]\nname = \"eamsgd\"\n", {.workers = 2});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, core::Errc::config);
  EXPECT_NE(result.error().message.find("train.optimizer = \"nesterov\""), std::string::npos) << result.error().message;
}

}  // namespace
}  // namespace troupe::strategies
