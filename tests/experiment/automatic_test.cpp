// Values that follow from others: train.lr = "auto", and the optimizer of a strategy that has only one.
#include "experiment/automatic.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experiment/run_spec.hpp"
#include "experiment/settings.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::experiment {
namespace {

core::Config config_of(const std::vector<std::string>& overrides, const std::string& text = "") {
  auto config = core::Config::parse(
      schema(), "[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\n[cluster]\nworkers = 2\n" + text, "a.toml",
      overrides);
  if (!config) throw std::logic_error(config.error().message);
  return *std::move(config);
}

double rate(const std::vector<std::string>& overrides) {
  return std::get<double>(config_of(overrides).value("train.lr"));
}

std::string why(const core::Config& config, const std::string& key) {
  for (const auto& [name, reason] : config.reasons())
    if (name == key) return reason;
  return {};
}

TEST(AutomaticRate, IsTheDefaultAndTheOptimizersUsualRate) {
  EXPECT_EQ(rate({}), 0.05);
  EXPECT_EQ(rate({"train.lr=auto"}), 0.05);
  EXPECT_EQ(rate({"train.optimizer=sgd"}), 0.1);
  EXPECT_EQ(rate({"train.optimizer=adam"}), 0.001);
}

TEST(AutomaticRate, NumberOfTheUserStaysAsItIs) {
  const auto config = config_of({"train.lr=0.3", "strategy.name=downpour"});
  EXPECT_EQ(std::get<double>(config.value("train.lr")), 0.3);
  EXPECT_EQ(why(config, "train.lr"), "");
}

// 0.6 / workers of the usual rate where all workers push full steps; 1.4 / 7 for an outer step of 0.7 / (1 − 0.9)
// after long local phases, 0.5 / 7 after short ones.
TEST(AutomaticRate, FollowsStrategyAndWorkers) {
  EXPECT_EQ(rate({"strategy.name=ssp"}), 0.015);
  EXPECT_EQ(rate({"strategy.name=downpour"}), 0.015);
  EXPECT_EQ(rate({"strategy.name=downpour", "cluster.workers=4"}), 0.0075);
  EXPECT_EQ(rate({"strategy.name=downpour", "cluster.workers=1"}), 0.05);
  EXPECT_EQ(rate({"strategy.name=diloco"}), 0.01);
  EXPECT_EQ(rate({"strategy.name=diloco", "strategy.outer_momentum=0"}), 0.05);
  EXPECT_EQ(rate({"strategy.name=local_sgd"}), 0.05);
  EXPECT_EQ(rate({"strategy.name=diloco", "strategy.tau=4"}), 0.00357);
  EXPECT_EQ(rate({"strategy.name=local_sgd", "strategy.outer=nesterov"}), 0.00357);
  for (const char* alone : {"bsp", "easgd", "eamsgd", "sync_easgd", "gossip", "pairs"})
    EXPECT_EQ(rate({fmt::format("strategy.name={}", alone)}), 0.05) << alone;
  EXPECT_EQ(rate({"strategy.name=bsp", "strategy.combine=updates"}), 0.025);
}

// A push that is divided by its staleness counts as one of two workers' at any size.
TEST(AutomaticRate, StalenessAwareServersNeedNoLowerRateForMoreWorkers) {
  const std::string aware = "strategy.staleness_aware=true";
  EXPECT_EQ(rate({"strategy.name=downpour", aware}), 0.015);
  EXPECT_EQ(rate({"strategy.name=downpour", aware, "cluster.workers=64"}), 0.015);
}

TEST(AutomaticRate, FallsWithASmallBatch) {
  EXPECT_EQ(rate({"data.batch=16"}), 0.05);
  EXPECT_EQ(rate({"data.batch=8"}), 0.025);
  EXPECT_EQ(rate({"data.batch=[64, 8]"}), 0.025);
  EXPECT_EQ(rate({"data.batch=8", "train.optimizer=adam"}), 0.001);
}

// Groups are the workers of the inner strategy.
TEST(AutomaticRate, MixedCountsGroups) {
  EXPECT_EQ(rate({"strategy.name=mixed"}), 0.05);  // one group of two
  EXPECT_EQ(rate({"strategy.name=mixed", "cluster.workers=4"}), 0.015);
  EXPECT_EQ(rate({"strategy.name=mixed", "cluster.workers=4", "strategy.inner=easgd"}), 0.05);
}

TEST(AutomaticRate, ModelsShareIsOfStepsAlongTheGradient) {
  EXPECT_EQ(rate({"model.name=cifar"}), 0.02);
  EXPECT_EQ(rate({"model.name=cifar", "train.optimizer=adam"}), 0.001);
  EXPECT_EQ(rate({"model.name=own", "model.layers=[{type = \"flatten\"}, {type = \"linear\", outputs = 10}]"}), 0.02);
}

// The number and its reason stand in the run's config.toml, which reads back to the same number without asking again.
TEST(AutomaticRate, ResolvedConfigurationHasTheNumberAndItsReason) {
  const auto config = config_of({"strategy.name=ssp"});
  const auto text = config.to_toml_with_reasons();
  EXPECT_NE(text.find("lr = 0.015  # auto: 0.05 for momentum, x 0.3 for ssp: 2 members add full steps to one centre\n"),
            std::string::npos)
      << text;
  const auto again = core::Config::parse(schema(), text, "config.toml", {"cluster.workers=8"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->value("train.lr"), config.value("train.lr"));
  EXPECT_TRUE(again->reasons().empty());
  const auto same = core::Config::parse(schema(), text, "config.toml", {});
  EXPECT_EQ(*same, config);
  EXPECT_EQ(same->to_toml(), config.to_toml()) << "a grid knows its runs by this text";
}

TEST(AutomaticRate, IsShownWithTheRunsNotes) {
  const auto notes = notes_on_derived(config_of({"strategy.name=ssp"}));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front().level, Note::Level::info);
  EXPECT_TRUE(notes.front().text.starts_with("train.lr = 0.015 (auto: ")) << notes.front().text;
}

TEST(AutomaticRate, OtherWordsAndNegativeNumbersAreRefused) {
  for (const char* value : {"train.lr=automatic", "train.lr=-1"}) {
    const auto refused = core::Config::parse(schema(), "", "a.toml", {value});
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code, core::Errc::config);
    EXPECT_NE(refused.error().message.find("auto"), std::string::npos) << refused.error().message;
  }
}

// EAMSGD is made of Nesterov steps: it takes them where plain or heavy-ball steps are set, and says so.
TEST(AutomaticOptimizer, StrategyWithOneOptimizerTakesIt) {
  for (const char* set : {"sgd", "momentum"}) {
    const auto config = config_of({"strategy.name=eamsgd"}, fmt::format("[train]\noptimizer = \"{}\"\n", set));
    EXPECT_EQ(std::get<std::string>(config.value("train.optimizer")), "nesterov");
    EXPECT_EQ(why(config, "train.optimizer"),
              fmt::format("eamsgd takes nesterov steps, not \"{}\" as set by a.toml:8", set));
    EXPECT_TRUE(make_strategy(resolve(config).value()));
  }
  const auto other = resolve(config_of({"strategy.name=eamsgd", "train.optimizer=adam"})).value();
  EXPECT_FALSE(make_strategy(other)) << "whoever sets adam does not mean Nesterov's steps";
  EXPECT_EQ(resolve(config_of({"strategy.name=easgd"})).value().train.optimizer, "momentum");
}

}  // namespace
}  // namespace troupe::experiment
