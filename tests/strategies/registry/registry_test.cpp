#include "strategies/registry/registry.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const auto& row : registry()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find(row.name), &row);
    EXPECT_FALSE(row.summary.empty()) << row.name;
    EXPECT_EQ(row.summary.find('\n'), std::string::npos) << row.name;
  }
  EXPECT_TRUE(names.contains("bsp"));
  EXPECT_TRUE(names.contains("easgd"));
  EXPECT_EQ(find("bps"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

/// A strategy's declared properties match its rules.
TEST(Registry, EveryStrategyIsMadeWithItsDefaults) {
  for (const auto& row : registry()) {
    const auto strategy = made("[strategy]\nname = \"" + row.name + "\"\n",
                               {.workers = 2, .optimizer = {.kind = core::OptimizerKind::nesterov}});
    EXPECT_NE(strategy->worker(), nullptr) << row.name;
    EXPECT_EQ(strategy->server() != nullptr, strategy->needs().servers) << row.name;
    EXPECT_NE(strategy->worker().get(), strategy->worker().get()) << "rules are not shared";
  }
}

TEST(Registry, AnUnknownNameIsRefusedWithTheNamesThereAre) {
  const auto strategy = try_make("[strategy]\nname = \"bps\"\n");
  ASSERT_FALSE(strategy);
  EXPECT_EQ(strategy.error().code, core::Errc::config);
  EXPECT_NE(strategy.error().message.find("test.toml:2: strategy.name = \"bps\": must be one of bsp | easgd"),
            std::string::npos)
      << strategy.error().message;
}

TEST(Registry, ARunWithoutWorkersOrItsServersIsRefused) {
  for (const auto& row : registry()) {
    const auto text = "[strategy]\nname = \"" + row.name + "\"\n";
    const core::OptimizerStep optimizer{.kind = core::OptimizerKind::nesterov};
    const auto nobody = try_make(text, {.workers = 0, .optimizer = optimizer});
    ASSERT_FALSE(nobody) << row.name;
    EXPECT_EQ(nobody.error().code, core::Errc::config);
    EXPECT_NE(nobody.error().message.find("cluster.workers"), std::string::npos) << nobody.error().message;
    const auto alone = try_make(text, {.workers = 2, .servers = 0, .optimizer = optimizer});
    if (alone) {
      EXPECT_FALSE((*alone)->needs().servers) << row.name;
    } else {
      EXPECT_EQ(alone.error().code, core::Errc::config);
      EXPECT_NE(alone.error().message.find("cluster.servers"), std::string::npos) << alone.error().message;
    }
  }
}

TEST(Registry, APeriodLongerThanTheRunIsWarnedOf) {
  core::Schema schema;
  add_options(schema);
  const auto config =
      core::Config::parse(schema, "[strategy]\nname = \"downpour\"\nn_push = 30\n", "test.toml", {}).value();
  const auto needs = make(config, {.workers = 2}).value()->needs();
  EXPECT_EQ(warnings(config, needs, 30), std::vector<std::string>{});
  EXPECT_EQ(warnings(config, needs, 29),
            std::vector<std::string>{"test.toml:3: strategy.n_push = 30 is longer than the run: a worker takes 29 "
                                     "steps, so that it trains alone until the end"});
  EXPECT_EQ(warnings(config, needs, 0).size(), 2U) << "n_fetch, too";
  EXPECT_EQ(warnings(config, needs, 0)[0],
            "test.toml:3: strategy.n_push = 30 is longer than the run, which has fewer steps than workers");
}

TEST(Registry, WithoutANameItIsBsp) { EXPECT_TRUE(made("")->needs().group); }

/// To change the strategy, strategy.name is enough: options of other strategies may stay; they are checked but unused.
TEST(Registry, OptionsBelongToTheirStrategy) {
  core::Schema schema;
  add_options(schema);
  const std::string text = "[strategy]\nname = \"bsp\"\ncombine = \"updates\"\ntau = 4\n";
  const auto bsp = core::Config::parse(schema, text, "test.toml", {});
  ASSERT_TRUE(bsp) << bsp.error().message;
  EXPECT_EQ(bsp->unused(), (std::vector<std::string>{"strategy.tau"}));
  EXPECT_THROW((void)bsp->value("strategy.tau"), std::out_of_range);
  const auto easgd = core::Config::parse(schema, text, "test.toml", {"strategy.name=easgd"});
  ASSERT_TRUE(easgd) << easgd.error().message;
  EXPECT_EQ(easgd->unused(), (std::vector<std::string>{"strategy.combine"}));
  EXPECT_EQ(std::get<std::int64_t>(easgd->value("strategy.tau")), 4);

  const auto wrong = core::Config::parse(schema, "[strategy]\nname = \"bsp\"\ntau = 0\n", "test.toml", {});
  ASSERT_FALSE(wrong) << "an option of another strategy is checked all the same";
  EXPECT_EQ(wrong.error().message, "test.toml:3: strategy.tau = 0: must be between 1 and 1,000,000,000");
}

TEST(Registry, AverageMomentumIsOfWeightsOnly) {
  for (const char* combine : {"gradients", "updates"}) {
    const auto strategy = try_make(std::string("[strategy]\ncombine = \"") + combine + "\"\naverage_momentum = true\n");
    ASSERT_FALSE(strategy) << combine;
    EXPECT_EQ(strategy.error().code, core::Errc::config);
    EXPECT_EQ(strategy.error().message,
              "test.toml:3: strategy.average_momentum = true needs strategy.combine = \"weights\"");
  }
  EXPECT_TRUE(try_make("[strategy]\ncombine = \"weights\"\naverage_momentum = true\n"));
  const auto set = try_make("", {.workers = 2}, {"strategy.average_momentum=true"});
  ASSERT_FALSE(set);
  EXPECT_TRUE(set.error().message.starts_with("--set: ")) << set.error().message;
}

}  // namespace
}  // namespace troupe::strategies
