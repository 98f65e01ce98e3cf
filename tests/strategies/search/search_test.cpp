/// What strategies declare for the schedule search: every row of the registry has it, and it is true of the strategy.
#include <set>

#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using Options = std::vector<std::string>;  // "strategy.tau=2"

constexpr RunShape kShapes[] = {
    {.workers = 1, .servers = 1}, {.workers = 2, .servers = 2}, {.workers = 5, .servers = 4}};

RunShape with_optimizer(const StrategyInfo& row, RunShape shape) {
  if (row.local_optimizer) shape.optimizer.kind = *row.local_optimizer;
  return shape;
}

/// Every combination that can be drawn.
std::vector<Options> combinations(const OptionSpace& space) {
  Options set;
  for (const auto& [key, value] : space.set) set.push_back("strategy." + key + "=" + value);
  std::vector<Options> all{set};
  for (const auto& choice : space.choices) {
    EXPECT_FALSE(choice.empty()) << "a choice of nothing";
    std::vector<Options> longer;
    for (const auto& alternative : choice)
      for (const auto& end : combinations(alternative))
        for (auto begin : all) {
          begin.insert(begin.end(), end.begin(), end.end());
          longer.push_back(std::move(begin));
        }
    all = std::move(longer);
  }
  return all;
}

core::Result<core::Config> parsed(const std::string& name, const Options& options) {
  core::Schema schema;
  add_options(schema);
  auto overrides = options;
  overrides.insert(overrides.begin(), "strategy.name=" + name);
  return core::Config::parse(schema, "", "test.toml", overrides);
}

TEST(Search, EveryRegisteredStrategyHasAnOptionSpaceAndProperties) {
  for (const auto& row : registry()) {
    ASSERT_TRUE(row.option_space) << row.name << " declares no option space";
    ASSERT_TRUE(row.properties) << row.name << " declares no properties";
    const auto config = parsed(row.name, {});
    ASSERT_TRUE(config) << config.error().message;
    for (const auto& shape : kShapes) {
      EXPECT_FALSE(row.option_space(shape).choices.empty()) << row.name << ": no option is ever drawn";
      EXPECT_FALSE(row.properties(*config, shape).empty()) << row.name << ": nothing of its own holds";
    }
  }
}

TEST(Search, EveryCombinationOfASpaceMakesAStrategyWithProperties) {
  core::Schema schema;
  add_options(schema);
  for (const auto& row : registry()) {
    for (const auto& bare : kShapes) {
      const auto shape = with_optimizer(row, bare);
      for (auto options : combinations(row.option_space(shape))) {
        SCOPED_TRACE(row.name + testing::PrintToString(options));
        options.push_back("strategy.name=" + row.name);
        const auto config = core::Config::parse(schema, "", "test.toml", options);
        ASSERT_TRUE(config) << config.error().message;
        EXPECT_TRUE(config->unused().empty()) << "an option of another strategy";
        const auto strategy = make(*config, shape);
        ASSERT_TRUE(strategy) << strategy.error().message;
        EXPECT_FALSE(row.properties(*config, shape).empty());
      }
    }
  }
}

/// A run with another optimizer is refused, and one with the required optimizer is not.
TEST(Search, ALocalOptimizerIsTheOnlyOneThatIsAccepted) {
  for (const auto& row : registry()) {
    for (const auto& optimizer : core::kOptimizers) {
      const auto strategy = try_make("[strategy]\nname = \"" + row.name + "\"\n",
                                     {.workers = 2, .servers = 1, .optimizer = {.kind = optimizer.kind}});
      EXPECT_EQ(strategy.has_value(), !row.local_optimizer || *row.local_optimizer == optimizer.kind)
          << row.name << " with " << optimizer.name;
    }
  }
}

TEST(Search, SpacesAreWrittenAsTheyAreDrawn) {
  EXPECT_EQ(combinations({.set = {{"p", "1"}}, .choices = {range("tau", 1, 2), values("overlap", {"off", "wait"})}}),
            (std::vector<Options>{{"strategy.p=1", "strategy.tau=1", "strategy.overlap=off"},
                                  {"strategy.p=1", "strategy.tau=2", "strategy.overlap=off"},
                                  {"strategy.p=1", "strategy.tau=1", "strategy.overlap=wait"},
                                  {"strategy.p=1", "strategy.tau=2", "strategy.overlap=wait"}}));
  EXPECT_EQ(range("tau", 3, 3).size(), 1U);
}

template <class P>
P only(const std::string& name, const Options& options, const RunShape& shape) {
  const auto config = parsed(name, options).value();
  for (const auto& property : find(name)->properties(config, shape))
    if (const auto* found = std::get_if<P>(&property)) return *found;
  throw std::logic_error(name + " does not declare the property");
}

TEST(Search, PropertiesHaveTheNumbersOfTheOptions) {
  const RunShape six{.workers = 6, .servers = 2};
  EXPECT_EQ(only<BackupSteps>("bsp", {"strategy.backup=2"}, six).backup, 2U);
  EXPECT_EQ(only<EqualReplicas>("bsp", {}, six).group_size, EqualReplicas{}.group_size) << "all are one group";
  const auto elastic = only<ElasticExchanges>("easgd", {"strategy.beta=0.9"}, six);
  EXPECT_EQ(elastic.alpha_worker, 0.9 / 6);
  EXPECT_EQ(elastic.alpha_server, 0.9 / 6);
  EXPECT_EQ(only<ElasticExchanges>("eamsgd", {"strategy.alpha_worker=0.25"}, six).alpha_worker, 0.25);
  EXPECT_EQ(only<SyncElasticRounds>("sync_easgd", {"strategy.beta=0.6"}, six).alpha, 0.6 / 6);
  EXPECT_TRUE(only<PushesCount>("downpour", {"strategy.server_optimizer=adam"}, six).server_optimizer);
  EXPECT_FALSE(only<PushesCount>("downpour", {}, six).server_optimizer);
  EXPECT_EQ(only<BoundedClocks>("ssp", {"strategy.s=3"}, six).s, 3U);
  const auto rounds = only<OuterRounds>("diloco", {"strategy.quorum=4"}, six);
  EXPECT_EQ(rounds.optimizer, core::OptimizerKind::nesterov);
  EXPECT_EQ(rounds.lr, 0.7);
  EXPECT_EQ(rounds.quorum, 4U);
  EXPECT_EQ(only<OuterRounds>("local_sgd", {}, six).lr, 1);

  // Six workers in groups of four are two workers of the inner strategy.
  const Options groups{"strategy.group_size=4", "strategy.inner=easgd", "strategy.ema=0.5"};
  EXPECT_EQ(only<EqualReplicas>("mixed", groups, six).group_size, 4U);
  EXPECT_EQ(only<ElasticExchanges>("mixed", {"strategy.group_size=4", "strategy.inner=easgd", "strategy.beta=0.9"}, six)
                .alpha_server,
            0.9 / 2);
  EXPECT_EQ(only<MovingAverage>("mixed", groups, six).decay, 0.5);
  EXPECT_EQ(only<BoundedClocks>("mixed", {"strategy.group_size=4", "strategy.inner=ssp"}, six).group_size, 4U);
}

}  // namespace
}  // namespace troupe::strategies
