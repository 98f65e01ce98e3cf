#include "experiment/directory/resumed_options.hpp"

#include <gtest/gtest.h>

#include "experiment/settings.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::experiment {
namespace {

using Options = std::vector<std::string>;

core::Config parsed(const std::string& text, const Options& overrides) {
  auto config = core::Config::parse(schema(), text, "config.toml", overrides);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return *config;
}

core::Config recorded(Options options) {
  options.insert(options.end(), {"model.name=mlp", "data.name=glyphs", "train.lr=0.05", "train.optimizer=nesterov"});
  return parsed(parsed("", options).to_toml(), {});
}

/// As `--resume` reads it.
core::Config resumed(const core::Config& before, const Options& overrides) {
  auto all = defaults_of_strategy(before, overrides);
  all.insert(all.end(), overrides.begin(), overrides.end());
  return parsed(before.to_toml(), all);
}

TEST(ResumedOptions, DefaultsOfTheStrategyBeforeBecomeThoseOfTheNewOne) {
  const auto before = recorded({"strategy.name=local_sgd"});
  for (const auto* name : {"strategy.name=diloco", R"(strategy.name = "diloco")", "strategy.name='diloco'"}) {
    const auto now = resumed(before, {"strategy.name=easgd", name});
    EXPECT_TRUE(now == recorded({"strategy.name=diloco"})) << now.to_toml();
    EXPECT_EQ(other_strategy_note(now, before),
              "strategy.name = \"diloco\", before \"local_sgd\": options that are not set are diloco's defaults "
              "(strategy.tau 8 → 32, strategy.outer \"sgd\" → \"nesterov\")");
  }
}

TEST(ResumedOptions, OthersAreKeptAndNamed) {
  const auto before = recorded({"strategy.name=local_sgd", "strategy.tau=5", "strategy.fragments=2"});
  const auto now = resumed(before, {"strategy.name=diloco", "strategy.fragments=1"});
  EXPECT_TRUE(now == recorded({"strategy.name=diloco", "strategy.tau=5"})) << now.to_toml();
  EXPECT_EQ(other_strategy_note(now, before),
            "strategy.name = \"diloco\", before \"local_sgd\": strategy.tau = 5 stays as it was set; all other options "
            "are diloco's defaults (strategy.outer \"sgd\" → \"nesterov\", "
            "strategy.fragments 2 → 1)");
}

TEST(ResumedOptions, TheUsersOwnWins) {
  const auto before = recorded({"strategy.name=local_sgd"});
  const auto now = resumed(before, {"strategy.name=diloco", "strategy.tau=8", "strategy.outer=sgd"});
  EXPECT_TRUE(now == recorded({"strategy.name=diloco", "strategy.tau=8", "strategy.outer=sgd"})) << now.to_toml();
}

TEST(ResumedOptions, TheSameStrategyKeepsAllOfThem) {
  const auto before = recorded({"strategy.name=local_sgd", "strategy.tau=5"});
  EXPECT_EQ(defaults_of_strategy(before, {}), Options{});
  EXPECT_EQ(defaults_of_strategy(before, {"strategy.name=local_sgd", "strategy.outer=nesterov"}), Options{});
  EXPECT_EQ(other_strategy_note(resumed(before, {}), before), "");
}

TEST(ResumedOptions, EveryStrategyTakesTheDefaultsOfEveryOther) {
  for (const auto& one : strategies::registry())
    for (const auto& other : strategies::registry()) {
      SCOPED_TRACE(one.name + " to " + other.name);
      const auto before = recorded({"strategy.name=" + one.name});
      const auto now = resumed(before, {"strategy.name=" + other.name});
      const auto fresh = recorded({"strategy.name=" + other.name});
      for (const auto& option : schema().options())
        if (option.scope == other.name) {
          EXPECT_TRUE(now.value(option.key) == fresh.value(option.key)) << option.key;
        }
    }
}

}  // namespace
}  // namespace troupe::experiment
