#include <set>

#include <gtest/gtest.h>

#include "experiment/settings.hpp"
#include "service/options/config_check.hpp"
#include "service/options/option_json.hpp"
#include "tests/folder.hpp"

namespace troupe::service {
namespace {

/// The rule itself is the oracle for the bounds that were read from its text.
TEST(OptionsTest, BoundsOfEveryNumberAreThoseOfItsRule) {
  int bounded = 0;
  for (const auto& option : experiment::schema().options()) {
    const auto bounds = bounds_of(option.rule);
    const auto allows = [&](double value) {
      const core::Value as = std::holds_alternative<std::int64_t>(option.default_value)
                                 ? core::Value(static_cast<std::int64_t>(value))
                                 : core::Value(value);
      return option.rule.allows(as);
    };
    const bool whole = std::holds_alternative<std::int64_t>(option.default_value);
    if (!whole && !std::holds_alternative<double>(option.default_value)) continue;
    const double step = whole ? 1 : 1e-6;
    if (bounds.least) {
      ++bounded;
      EXPECT_EQ(allows(*bounds.least), !bounds.open) << option.key << ": " << option.rule.text;
      EXPECT_FALSE(allows(*bounds.least - step)) << option.key << ": " << option.rule.text;
      EXPECT_TRUE(allows(*bounds.least + step)) << option.key << ": " << option.rule.text;
    } else if (option.rule.allows) {
      EXPECT_EQ(option.rule.text.find("≥"), std::string::npos) << option.key;
    }
    if (bounds.most) {
      EXPECT_TRUE(allows(*bounds.most)) << option.key << ": " << option.rule.text;
      EXPECT_FALSE(allows(*bounds.most * (1 + 1e-6) + step)) << option.key << ": " << option.rule.text;
    }
  }
  EXPECT_GT(bounded, 30);
}

TEST(OptionsTest, EveryKeyOfAStrategyIsThere) {
  const auto rows = options_json(experiment::schema(), "easgd");
  std::set<std::string> keys;
  for (const auto& row : rows) keys.insert(row["key"]);
  for (const auto& option : experiment::schema().options()) {
    const bool in_force = experiment::schema().find(option.key, "easgd") != nullptr;
    EXPECT_EQ(keys.contains(option.key), in_force) << option.key;
  }
}

ConfigVerdict verdict_on(const Json& body) { return check_config(config_text(body).value()); }

const Json kGood{{"strategy.name", "easgd"}, {"model.name", "lenet"}, {"data.name", "glyphs"}};

TEST(CheckTest, GoodConfigurationIsResolved) {
  const auto verdict = verdict_on({{"config", kGood}});
  EXPECT_TRUE(verdict.errors.empty()) << json_of(verdict).dump();
  EXPECT_NE(verdict.toml.find("tau"), std::string::npos);
  // What it says is a configuration again, and means the same.
  EXPECT_EQ(verdict_on({{"toml", verdict.toml}}).errors.size(), 0U);
}

TEST(CheckTest, ErrorsNameTheirKey) {
  auto config = kGood;
  config["train.batch"] = 3;
  EXPECT_EQ(verdict_on({{"config", config}}).errors.size(), 1U);
  config = kGood;
  config["cluster.workers"] = -1;
  const auto verdict = verdict_on({{"config", config}});
  ASSERT_EQ(verdict.errors.size(), 1U);
  EXPECT_EQ(verdict.errors[0].key, "cluster.workers");
}

TEST(CheckTest, StringsAreQuotedInToml) {
  auto config = kGood;
  config["run.name"] = "a\"\nrun.dir = \"/etc";
  const auto verdict = verdict_on({{"config", config}});
  EXPECT_EQ(verdict.toml.find("dir = \"/etc"), std::string::npos);
}

TEST(CheckTest, ProgramsAreNotStarted) {
  auto config = kGood;
  const tests::Folder folder;
  config["model.command"] = {"/bin/touch", folder.file("started")};
  static_cast<void>(verdict_on({{"config", config}}));
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(CheckTest, BodiesWithoutAConfigurationAreRefused) {
  for (const auto& body : {Json{{"x", 1}}, Json{{"config", 1}}, Json{{"toml", 1}}, Json{{"config", {{"a b", 1}}}},
                           Json{{"config", kGood}, {"toml", ""}}, Json{{"config", {{"a", {{"b", 1}}}}}}})
    EXPECT_FALSE(config_text(body)) << body.dump();
}

}  // namespace
}  // namespace troupe::service
