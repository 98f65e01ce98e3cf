// What members of a resumed session start with: the steps of their hosts, and the number of their optimizer's step.
#include "experiment/state/start_state.hpp"

#include <gtest/gtest.h>

#include "experiment/settings.hpp"

namespace troupe::experiment {
namespace {

using Steps = std::vector<std::uint64_t>;

class StartStateTest : public testing::Test {
 protected:
  RunSpec spec(std::vector<std::string> options) {
    options.emplace_back("train.optimizer=adam");
    auto config = core::Config::parse(schema(), "[model]\nname = \"mlp\"\nwidths = [3]\n[data]\nname = \"glyphs\"\n",
                                      "a.toml", options);
    return build_run_spec(resolve(std::move(*config)).value(), false).value();
  }
  /// A checkpoint of a run of two workers after 30 steps.
  Checkpoint checkpoint(const RunSpec& spec, const std::vector<std::string>& prefixes) {
    Checkpoint checkpoint;
    checkpoint.step = 60;
    checkpoint.graph = spec.graph;
    checkpoint.strategy = spec.settings->strategy;
    checkpoint.optimizer = "adam";
    checkpoint.vectors[""] = zeros(spec);
    for (const auto& prefix : prefixes) checkpoint.vectors[prefix] = zeros(spec);
    checkpoint.totals.worker_steps = {30, 30};
    return checkpoint;
  }
  static std::vector<float> zeros(const RunSpec& spec) {
    return std::vector<float>(static_cast<std::size_t>(spec.graph->parameter_count()));
  }
};

TEST_F(StartStateTest, MomentsThatAllShareGoOnAtTheirNumber) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=3"});
  auto saved = checkpoint(spec, {optimizer_prefix(-1, 0), optimizer_prefix(-1, 1)});
  saved.optimizer_steps = {{optimizer_prefix(-1, 0), 12}, {optimizer_prefix(-1, 1), 12}};
  const auto start = start_state(spec, &saved);
  EXPECT_EQ(start.first_steps, (Steps{30, 30, 30}));
  EXPECT_EQ(start.optimizer_steps, (Steps{12, 12, 12}));
}

TEST_F(StartStateTest, WorkerWithoutMomentsOfItsOwnCountsFromZero) {
  const auto spec = this->spec({"strategy.name=bsp", "strategy.combine=updates", "cluster.workers=3"});
  auto saved = checkpoint(spec, {optimizer_prefix(0, 0), optimizer_prefix(0, 1)});
  saved.optimizer_steps = {{optimizer_prefix(0, 0), 30}, {optimizer_prefix(0, 1), 30}};
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{30, 0, 0}));
}

TEST_F(StartStateTest, CheckpointOfVersion01HasTheStepsForIt) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=2"});
  const auto saved = checkpoint(spec, {optimizer_prefix(-1, 0), optimizer_prefix(-1, 1)});
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{30, 30}));
}

TEST_F(StartStateTest, StateThatIsDiscardedCountsFromZero) {
  const auto spec = this->spec({"strategy.name=easgd", "cluster.workers=2"});
  const auto start = start_state(spec, nullptr);
  EXPECT_EQ(start.optimizer_steps, (Steps{0, 0}));
  const auto saved = checkpoint(spec, {});
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{0, 0}));
  EXPECT_EQ(start_state(spec, &saved).first_steps, (Steps{0, 0}));
}

TEST_F(StartStateTest, AnotherOptimizerCountsFromZero) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=2"});
  auto saved = checkpoint(spec, {optimizer_prefix(-1, 0)});
  saved.optimizer = "momentum";
  saved.optimizer_steps = {{optimizer_prefix(-1, 0), 30}};
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{0, 0}));
}

// The checkpoint comes from a rule with independent workers. In step, unequal first steps would make them wait forever.
TEST_F(StartStateTest, InStepAllBeginAtOneStep) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=3"});
  auto saved = checkpoint(spec, {});
  saved.totals.worker_steps = {30, 27};
  EXPECT_EQ(start_state(spec, &saved).first_steps, (Steps{30, 30, 30}));
}

}  // namespace
}  // namespace troupe::experiment
