// The moving average of every strategy, against the formula in double precision.
#include "strategies/combined/averaged.hpp"

#include <map>

#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::VirtualRun;
using explore::VirtualRunOptions;

constexpr double kEma = 0.75;

std::unique_ptr<Strategy> averaged_of(const std::string& name, std::uint32_t workers) {
  RunShape shape{.workers = workers, .servers = 2, .optimizer = {.lr = 0.05F}, .ema = kEma};
  if (const auto kind = find(name)->local_optimizer) shape.optimizer = {.kind = *kind, .lr = 0.05F, .momentum = 0.5F};
  return made("[strategy]\nname = \"" + name + "\"\n" + (name == "bsp" ? "" : "tau = 2"), shape);
}

TEST(Averaged, EveryStrategyMayKeepAnAverage) {
  for (const auto& row : registry()) {
    SCOPED_TRACE(row.name);
    RunShape shape{.workers = 3, .servers = 2, .ema = 0.9};
    if (row.local_optimizer) shape.optimizer.kind = *row.local_optimizer;
    const std::string text = "[strategy]\nname = \"" + row.name + "\"";
    const auto plain = made(text, [&] {
      auto without = shape;
      without.ema = 0;
      return without;
    }());
    const auto strategy = made(text, shape);
    const auto needs = strategy->needs(), before = plain->needs();
    EXPECT_FALSE(before.averages());
    EXPECT_TRUE(needs.averages());
    EXPECT_EQ(needs.model, before.model);
    EXPECT_EQ(before.model_vector(), before.model == ModelHome::center ? kCenter : kParams);
    const bool center = needs.model == ModelHome::center;
    EXPECT_EQ(needs.server_states, before.server_states + (center ? 1 : 0));
    EXPECT_EQ(needs.worker_slots.size(), before.worker_slots.size() + (center ? 0 : 1));
    EXPECT_EQ(needs.model_vector(), center ? server_state(before.server_states) : kWorkerAverage);
  }
}

/// Servers: e follows every write of the centre, from the centre's begin.
TEST(Averaged, AShardsAverageFollowsItsCentre) {
  for (const std::string name : {"easgd", "local_sgd", "sync_easgd"}) {
    SCOPED_TRACE(name);
    const auto strategy = averaged_of(name, 3);
    VirtualRunOptions options{.workers = 3, .servers = 2, .steps = 12, .delays = Delays::extreme};
    std::map<ShardId, std::vector<double>> expected;
    options.on_server_kernel = [&](const auto& kernel) {
      if (!writes(kernel.call, kCenter)) return;
      auto& e =
          expected.try_emplace(kernel.shard, kernel.center_before.begin(), kernel.center_before.end()).first->second;
      for (std::size_t i = 0; i < e.size(); ++i) e[i] = kEma * e[i] + (1 - kEma) * double{kernel.center[i]};
    };
    VirtualRun run(*strategy, options);
    run.execute();
    for (ShardId s = 0; s < 2; ++s) {
      ASSERT_GT(run.server(s).host().version(), 3U);
      const auto average = run.server(s).peek(strategy->needs().model_slot);
      for (std::size_t i = 0; i < average.size(); ++i) ASSERT_NEAR(average[i], expected[s][i], 2e-5) << i;
    }
  }
}

/// A rule that does nothing but step.
class SteppingRule final : public WorkerRule {
 public:
  void on(const StepDone& event, const WorkerContext&, WorkerActions& then) override {
    then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
    then.reduce(1, kParams, ReduceOp::mean);
  }
  void on(const ExchangeDone&, const WorkerContext&, WorkerActions& then) override { then.compute(); }
};
class Stepping final : public Strategy {
 public:
  Needs needs() const override { return {.group = true, .model = ModelHome::any_worker}; }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<SteppingRule>(); }
  std::unique_ptr<ServerRule> server() const override { return nullptr; }
};

/// Workers: once per step, when all of the step's exchanges have ended, and before the next one; not before the first.
TEST(Averaged, AWorkersAverageFollowsEachStepOnce) {
  const auto strategy = averaged(std::make_unique<Stepping>(), kEma);
  const auto rule = strategy->worker();
  const Membership members{1, {0, 1}};
  const WorkerContext context{0, members, 1, 0};
  const auto said = [&](const auto& event) {
    WorkerActions then;
    rule->on(event, context, then);
    return then.list();
  };
  EXPECT_EQ(said(Started{}).size(), 1U);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(said(StepDone{}).size(), 2U);  // the step and the reduction
    const auto last = said(ExchangeDone{});
    ASSERT_EQ(last.size(), 2U);
    const auto* const average = std::get_if<ApplyLocal>(&last.front());
    ASSERT_NE(average, nullptr);
    EXPECT_EQ(average->call,
              scale_add(kWorkerAverage, static_cast<float>(kEma), 1 - static_cast<float>(kEma), kParams));
    EXPECT_TRUE(std::holds_alternative<Compute>(last.back()));
  }
}

TEST(Averaged, OffIsTheStrategyItself) {
  auto strategy = std::make_unique<Stepping>();
  const auto* const same = strategy.get();
  EXPECT_EQ(averaged(std::move(strategy), 0).get(), same);
}

}  // namespace
}  // namespace troupe::strategies
