#include "apps/grid/expansion.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::grid {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

GridFile file_of(std::vector<Axis> axes) {
  GridFile file;
  file.path = "a.toml";
  file.name = "a";
  file.bases = {"base.toml"};
  file.axes = std::move(axes);
  return file;
}

/// "tau=1 lr=0.1", in the order of the combination.
std::vector<std::string> told(const GridFile& file, const std::vector<std::string>& strategies = {"bsp"}) {
  std::vector<std::string> all;
  for (const auto& combination : expand(file, strategies)) {
    std::string text = file.bases.size() > 1 ? file.bases[combination.base] : "";
    for (const auto& choice : combination.choices) text += (text.empty() ? "" : " ") + choice.key + "=" + choice.value;
    all.push_back(text);
  }
  return all;
}

TEST(ExpandTest, MultipliesInTheOrderOfTheFile) {
  EXPECT_THAT(told(file_of({{"x", {"1", "2"}, ""}, {"y", {"a", "b"}, ""}})),
              ElementsAre("x=1 y=a", "x=1 y=b", "x=2 y=a", "x=2 y=b"));
}

TEST(ExpandTest, AnEmptyGridIsOneRunPerBaseAndSeed) {
  auto file = file_of({});
  EXPECT_THAT(told(file), ElementsAre(""));
  file.seeds = {5, 3};
  file.bases = {"b.toml", "a.toml"};
  EXPECT_THAT(told(file, {"bsp", "bsp"}),
              ElementsAre("b.toml run.seed=5", "b.toml run.seed=3", "a.toml run.seed=5", "a.toml run.seed=3"));
}

TEST(ExpandTest, ZippedKeysAdvanceTogether) {
  auto file = file_of({{"x", {"1", "2"}, ""}});
  file.zips = {{{"lr", {"0.1", "0.2"}, ""}, {"batch", {"8", "16"}, ""}}};
  EXPECT_THAT(told(file),
              ElementsAre("x=1 lr=0.1 batch=8", "x=1 lr=0.2 batch=16", "x=2 lr=0.1 batch=8", "x=2 lr=0.2 batch=16"));
}

TEST(ExpandTest, OnlyBlocksMultiplyAndOverrideRunsOfTheirStrategy) {
  auto file = file_of({{"lr", {"1", "2"}, ""}, {"strategy.name", {"\"bsp\"", "\"easgd\""}, ""}});
  file.only = {{"easgd", {{"tau", {"4", "8"}, ""}, {"lr", {"3"}, ""}}}};
  EXPECT_THAT(told(file), ElementsAre("strategy.name=\"bsp\" lr=1", "strategy.name=\"bsp\" lr=2",
                                      "strategy.name=\"easgd\" tau=4 lr=3", "strategy.name=\"easgd\" tau=8 lr=3"));
}

TEST(ExpandTest, TheStrategyMayComeFromTheBase) {
  auto file = file_of({});
  file.bases = {"b.toml", "e.toml"};
  file.only = {{"easgd", {{"tau", {"4", "8"}, ""}}}};
  EXPECT_THAT(told(file, {"bsp", "easgd"}), ElementsAre("b.toml", "e.toml tau=4", "e.toml tau=8"));
}

TEST(ExpandTest, TheStrategyMayStandInAZipGroup) {
  auto file = file_of({{"x", {"1"}, ""}});
  file.zips = {{{"strategy.name", {"\"bsp\"", "\"easgd\""}, ""}, {"lr", {"0.1", "0.2"}, ""}}};
  file.only = {{"easgd", {{"tau", {"4"}, ""}}}};
  EXPECT_THAT(told(file), ElementsAre("strategy.name=\"bsp\" lr=0.1 x=1", "strategy.name=\"easgd\" lr=0.2 x=1 tau=4"));
}

TEST(ExpandTest, ExcludesWhereEveryKeyHasOneOfItsValues) {
  auto file = file_of({{"x", {"1", "2", "3"}, ""}, {"y", {"1", "2"}, ""}});
  file.seeds = {1, 2};
  file.excludes = {{{{"x", {"1", "2"}, ""}, {"y", {"2"}, ""}}},
                   {{{"x", {"3"}, ""}, {"run.seed", {"2"}, ""}}},
                   {{{"base", {"\"other.toml\""}, ""}}},
                   {{{"of another strategy", {"1"}, ""}, {"x", {"1"}, ""}}}};
  EXPECT_THAT(told(file), ElementsAre("x=1 y=1 run.seed=1", "x=1 y=1 run.seed=2", "x=2 y=1 run.seed=1",
                                      "x=2 y=1 run.seed=2", "x=3 y=1 run.seed=1", "x=3 y=2 run.seed=1"));
}

TEST(VariedKeysTest, AreTheKeysThatDiffer) {
  auto file = file_of({{"fixed", {"1"}, ""}, {"strategy.name", {"\"bsp\"", "\"easgd\""}, ""}, {"x", {"1", "2"}, ""}});
  file.only = {{"easgd", {{"tau", {"4"}, ""}}}};
  file.seeds = {1, 2};
  EXPECT_THAT(varied_keys(expand(file, std::vector<std::string>{"bsp"})),
              ElementsAre("strategy.name", "x", "tau", "run.seed"));
  EXPECT_THAT(varied_keys(expand(file_of({}), std::vector<std::string>{"bsp"})), IsEmpty());
}

TEST(NameTest, NameContainsTheVariedKeys) {
  auto file = file_of({});
  const std::vector<std::string> varied{"strategy.name", "strategy.alpha", "cluster.slowdown", "run.seed"};
  const Combination easgd{0,
                          {{"strategy.name", "\"easgd\"", ""},
                           {"strategy.alpha", "0.5", ""},
                           {"cluster.slowdown", "[1, 1, 4]", ""},
                           {"train.lr", "0.1", ""},
                           {"run.seed", "3", ""}}};
  EXPECT_EQ(name_of(easgd, varied, file, "all"), "easgd_alpha=0.5_slowdown=1-1-4_seed=3");
  EXPECT_EQ(name_of({0, {{"strategy.name", "\"bsp\"", ""}}}, varied, file, "all"), "bsp");
  EXPECT_EQ(name_of(easgd, {}, file, "all"), "all");
  const std::vector<std::string> alike{"strategy.alpha", "train.alpha"};
  EXPECT_EQ(name_of(easgd, alike, file, "all"), "strategy.alpha=0.5");
  EXPECT_EQ(
      name_of({0, {{"data.path", "\"../some where/mnist\"", ""}}}, std::vector<std::string>{"data.path"}, file, "a"),
      "path=..-somewhere-mnist");
}

TEST(NameTest, LongNamesEndInAHashOfTheRest) {
  auto file = file_of({});
  const std::vector<std::string> varied{"model.layers"};
  std::set<std::string> names;
  for (const char* end : {"a", "b"}) {
    const auto name = name_of({0, {{"model.layers", std::string(200, 'x') + end, ""}}}, varied, file, "a");
    EXPECT_LE(name.size(), 80u);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 2u);
}

TEST(DescribeTest, ListsKeysAndValues) {
  auto file = file_of({});
  EXPECT_EQ(describe({0, {{"strategy.tau", "4", ""}, {"run.seed", "1", ""}}}, file), "strategy.tau = 4, run.seed = 1");
}

}  // namespace
}  // namespace troupe::grid
