/// Options of local_sgd and diloco: which fit the run and which are refused, and what a lost shard's answer does to a worker.
#include <gtest/gtest.h>

#include "strategies/host/worker_host.hpp"
#include "strategies/local_sgd.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

std::string text(const std::string& options, const std::string& name = "local_sgd") {
  return "[strategy]\nname = \"" + name + "\"\n" + options;
}

TEST(LocalSgdOptions, OptionsThatDoNotFitTheRunAreRefusedByKey) {
  const auto refusal = [](const std::string& options) {
    const auto result = try_make(text(options), {.workers = 3, .servers = 2});
    EXPECT_FALSE(result) << options;
    if (result) return std::string{};
    EXPECT_EQ(result.error().code, core::Errc::config);
    return result.error().message;
  };
  EXPECT_EQ(refusal("fragments = 4\n"),
            "test.toml:3: strategy.fragments = 4 needs as many shards: cluster.servers is 2");
  EXPECT_EQ(
      refusal("tau = 5\nfragments = 2\n"),
      "test.toml:4: strategy.fragments = 2 must divide strategy.tau = 5: one fragment every tau / fragments steps");
  EXPECT_EQ(refusal("tau = 6\nfragments = 2\ndelay = 3\n"),
            "test.toml:5: strategy.delay = 3 must be below strategy.tau / strategy.fragments = 3: an answer is taken "
            "before the next fragment is sent");
  EXPECT_EQ(refusal("quorum = 4\n"), "test.toml:3: strategy.quorum = 4 is more than there are: cluster.workers is 3");
  EXPECT_NE(refusal("outer = \"adam\"\n").find("sgd | nesterov"), std::string::npos);
  EXPECT_TRUE(try_make(text("tau = 6\nfragments = 2\ndelay = 2\nquorum = 3\n"), {.workers = 3, .servers = 2}));
}

/// The outer step that the server asks for when one worker's round closes.
core::OptimizerStep outer_of(const std::string& toml) {
  const auto strategy = made(toml, {.workers = 1});
  ServerActions then;
  strategy->server()->on(Request{.id = 1, .clock = 1}, ServerContext{0, {0, {0}}, 0}, then);
  for (const auto& action : then.list()) {
    const auto* apply = std::get_if<Apply>(&action);
    if (apply && apply->call.kernel == KernelName::optimize) return apply->call.optimizer;
  }
  return {};
}

TEST(LocalSgdOptions, TheOuterOptimizersDefaultsAreThoseOfThePapers) {
  EXPECT_EQ(outer_of(text("")), (core::OptimizerStep{.kind = core::OptimizerKind::sgd, .lr = 1, .momentum = 0.9F}));
  EXPECT_EQ(made(text("", "diloco"))->needs().periods.front().steps, 32U);  // as configs/mnist-diloco.toml
  EXPECT_EQ(outer_of(text("", "diloco")),
            (core::OptimizerStep{.kind = core::OptimizerKind::nesterov, .lr = 0.7F, .momentum = 0.9F}));
  EXPECT_EQ(outer_of(text("outer = \"nesterov\"")).lr, 0.7F);
  EXPECT_EQ(outer_of(text("outer = \"sgd\"", "diloco")).lr, 1);
  EXPECT_EQ(outer_of(text("outer_lr = 0.25\nouter_momentum = 0.5", "diloco")),
            (core::OptimizerStep{.kind = core::OptimizerKind::nesterov, .lr = 0.25F, .momentum = 0.5F}));
}

TEST(LocalSgdOptions, OnlyAnOptimizerWithAVelocityHasAStateToKeep) {
  EXPECT_EQ(made(text(""))->needs().server_state_of, "");
  EXPECT_EQ(made(text(""))->needs().server_states, 1);
  EXPECT_EQ(made(text("", "diloco"))->needs().server_state_of, "outer nesterov");
  EXPECT_EQ(made(text("", "diloco"))->needs().server_states, 2);
}

struct LocalOptionsStage {
  explicit LocalOptionsStage(const LocalSgdRule& rule)
      : ports(rule.servers), host(std::make_unique<LocalSgdWorker>(rule), {ports, &ports, nullptr, nullptr}, {}) {
    host.start(0);
  }
  [[nodiscard]] std::size_t kernels_of_one_step() {
    ports.kernels.clear();
    host.step_done(0, {});
    return ports.kernels.size();
  }
  NotingPorts ports;
  WorkerHost host;
};

/// A lost shard drops its part: the worker ignores the answer and continues from its own parameters.
TEST(LocalSgdOptions, ADroppedAnswerIsNotTaken) {
  LocalOptionsStage waits({.tau = 1});
  waits.host.step_done(0, {});
  EXPECT_FALSE(waits.host.computing());
  waits.ports.kernels.clear();
  waits.host.replied({.shard = 0, .exchange = 1, .dropped = true});
  EXPECT_TRUE(waits.host.computing());
  EXPECT_EQ(waits.ports.kernels.size(), 0U);

  LocalOptionsStage goes_on({.tau = 4, .delay = 2});
  for (int step = 0; step < 4; ++step) goes_on.host.step_done(0, {});
  goes_on.host.replied({.shard = 0, .exchange = 4, .dropped = true});
  for (int step = 0; step < 2; ++step) EXPECT_EQ(goes_on.kernels_of_one_step(), 1U) << "the local step alone";
  EXPECT_TRUE(goes_on.host.computing());
}

TEST(LocalSgdOptions, AnAnswerIsTakenWhenItIsDueAndNotBefore) {
  LocalOptionsStage s({.tau = 4, .delay = 2});
  for (int step = 0; step < 4; ++step) s.host.step_done(0, {});
  s.host.replied({.shard = 0, .exchange = 4});
  EXPECT_EQ(s.kernels_of_one_step(), 1U) << "early";
  EXPECT_EQ(s.kernels_of_one_step(), 4U) << "x − x_sent + c, and c is kept";

  LocalOptionsStage late({.tau = 4, .delay = 2});
  for (int step = 0; step < 6; ++step) late.host.step_done(0, {});
  EXPECT_FALSE(late.host.computing()) << "it is due and not there";
  late.host.replied({.shard = 0, .exchange = 4});
  EXPECT_TRUE(late.host.computing());
}

}  // namespace
}  // namespace troupe::strategies
