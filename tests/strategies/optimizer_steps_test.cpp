/// The optimizer's step number counts the updates of its moments, whatever the worker's own step count starts from.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "strategies/host/kernel_call.hpp"
#include "strategies/host/worker_host.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

constexpr core::OptimizerStep kAdam{
    .kind = core::OptimizerKind::adam, .lr = 0.1F, .momentum = 0.9F, .decay = 0.99F, .epsilon = 1e-8F};

/// Adam of one number (Kingma and Ba 2015, algorithm 1), in double precision.
struct AdamOracle {
  double x = 0, m = 0, v = 0;
  int t = 0;
  double step(double g) {
    ++t;
    m = 0.9 * m + (1 - 0.9) * g;
    v = 0.99 * v + (1 - 0.99) * g * g;
    return x -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
  }
};

/// A worker of one number whose exchanges get no answer: the tests look at the steps between two exchanges.
struct OneNumber final : WorkerPort, ShardPort, PeerPort {
  Duration now() const override { return Duration{0}; }
  void compute(Step step) override { computed.push_back(step); }
  void run(const KernelCall& call, Shards) override {
    strategies::run(core::reference_kernels(), call, [this](Slot slot) -> core::Span { return {&slots[slot], 1}; });
  }
  void set_deadline(DeadlineId, Duration) override {}
  ShardId shards() const override { return 1; }
  void send(const ShardRequest& request) override { requests.push_back(request); }
  bool send(const SendPeer&) override { return false; }
  void release(Slot) override {}

  std::map<Slot, float> slots;
  std::vector<Step> computed;
  std::vector<ShardRequest> requests;
};

constexpr Step kLate = 1001;  // the first step of a newcomer: far from a multiple of any period below

class LocalOptimizer : public testing::TestWithParam<const char*> {
 protected:
  WorkerHost host(Step first, std::uint64_t optimizer_steps = 0) {
    const auto toml = std::string("[strategy]\nname = ") + GetParam();
    WorkerHost host(made(toml)->worker(), {ports_, &ports_, nullptr, &ports_},
                    {.self = 0, .membership = {0, {0, 1}}, .optimizer_steps = optimizer_steps});
    host.start(first);
    return host;
  }
  /// Performs steps with changing gradients, and expects the oracle's numbers.
  void expect_adam(WorkerHost& host, AdamOracle& oracle, int steps = 20) {
    for (int k = 0; k < steps; ++k) {
      const float g = k % 3 == 0 ? 2.F : -0.5F;
      ports_.slots[kGrads] = g;
      host.step_done(0, kAdam);
      EXPECT_NEAR(ports_.slots[kParams], oracle.step(g), 1e-4) << "its step " << k;
    }
    ASSERT_TRUE(host.computing());
    EXPECT_TRUE(ports_.requests.empty());
  }

  OneNumber ports_;
};

TEST_P(LocalOptimizer, NewcomerCorrectsForItsOwnMoments) {
  auto host = this->host(kLate);
  AdamOracle oracle;
  expect_adam(host, oracle);
  EXPECT_EQ(host.steps(), kLate + 20);
}

TEST_P(LocalOptimizer, ResumedMomentsGoOnAtTheirNumber) {
  AdamOracle oracle;
  {
    auto before = host(0);
    expect_adam(before, oracle, 5);
  }
  auto host = this->host(kLate, 5);  // moments and parameters are kept
  expect_adam(host, oracle);
}

TEST_P(LocalOptimizer, StateKeepsTheNumber) {
  AdamOracle oracle;
  auto before = host(kLate);
  expect_adam(before, oracle, 5);
  before.settle();
  const auto toml = std::string("[strategy]\nname = ") + GetParam();
  WorkerHost again(made(toml)->worker(), {ports_, &ports_, nullptr, &ports_}, {.self = 0, .membership = {0, {0, 1}}});
  const auto restored = again.restore(before.state());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(again.optimizer_steps(), 5U);
  expect_adam(again, oracle);
}

INSTANTIATE_TEST_SUITE_P(Strategies, LocalOptimizer,
                         testing::Values("\"easgd\"\ntau = 500", "\"sync_easgd\"\ntau = 500",
                                         "\"downpour\"\nn_push = 500\nn_fetch = 500", "\"ssp\"\nsteps_per_clock = 500",
                                         "\"local_sgd\"\ntau = 500", "\"diloco\"\ntau = 500", "\"gossip\"",
                                         "\"mixed\"\ngroup_size = 1\ninner = "
                                         "\"easgd\"\ntau = 500"),
                         [](const auto& info) { return std::string("of") + std::to_string(info.index); });

/// The number counts calls of the optimizer, not the steps begun.
TEST(OptimizerSteps, StepsWithoutTheOptimizerAreNotCounted) {
  OneNumber ports;
  int steps = 0;
  const auto every_third = [&](const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
    if (const auto* done = std::get_if<StepDone>(&event)) {
      if (++steps % 3 == 0)
        then.apply(optimize(kParams, kGrads, kVelocity, done->optimizer));
      else
        then.apply(axpy(kAcc, 1, kGrads));
    }
    then.compute_at(context.step + 2);  // skips two steps
  };
  WorkerHost host(std::make_unique<ScriptedWorker>(every_third), {ports}, {});
  EventNames told;
  host.start(0);
  AdamOracle oracle;
  for (int k = 1; k <= 30; ++k) {
    ports.slots[kGrads] = 1;
    host.step_done(0, kAdam);
    if (k % 3 == 0) {
      EXPECT_NEAR(ports.slots[kParams], oracle.step(1), 1e-4) << "step " << k;
    }
  }
  EXPECT_EQ(host.optimizer_steps(), 10U);
  EXPECT_EQ(host.totals().passed, 2U + 30U * 2U);
}

/// A worker whose servers have the optimizer has no moments of its own.
TEST(OptimizerSteps, RawGradientsAreNoSteps) {
  for (const char* toml :
       {"[strategy]\nname = \"downpour\"\nserver_optimizer = \"adam\"\nn_push = 500\nn_fetch = 500\n",
        "[strategy]\nname = \"bsp\"\nbackup = 1\n"}) {
    OneNumber ports;
    EventNames told;
    WorkerHost host(made(toml, {.workers = 3})->worker(), {ports, &ports}, {.self = 0, .membership = {0, {0, 1, 2}}},
                    &told);
    host.start(kLate);
    host.step_done(0, kAdam);
    EXPECT_EQ(host.optimizer_steps(), 0U) << toml;
    EXPECT_EQ(std::get<StepDone>(told.events.back()).optimizer.t, 1U) << toml;
  }
}

/// Journals of version 1: the number is the worker's step, and their hosts record no number.
TEST(OptimizerSteps, RecordedNumbersHoldWhereTheyAreGiven) {
  OneNumber ports;
  EventNames told;
  WorkerHost host(made("[strategy]\nname = \"easgd\"\ntau = 500\n")->worker(), {ports, &ports},
                  {.self = 0, .membership = {0, {0, 1}}}, &told);
  const auto restored = host.restore("step=1001;epoch=0p+0;lr=0p+0;versions=0:3,;skips=0:;half=0:;");
  ASSERT_TRUE(restored) << restored.error().message;
  host.step_done(0, kAdam, 1002);
  EXPECT_EQ(std::get<StepDone>(told.events.back()).optimizer.t, 1002U);
  host.step_done(0, kAdam, 1003);
  EXPECT_EQ(host.optimizer_steps(), 1003U);
}

}  // namespace
}  // namespace troupe::strategies
