#include "apps/grid/results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/grid/folder.hpp"

namespace troupe::grid {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunStatus done(double accuracy, double wall_s) {
  return {Status::done, 0, "", "runs/g/x",
          nlohmann::ordered_json{
              {"run", "runs/g/x"}, {"wall_s", wall_s}, {"test", {{"loss", nullptr}, {"accuracy", accuracy}}}}
              .dump()};
}

class ResultsTest : public testing::Test {
 protected:
  ResultsTest() {
    const auto base = folder_.write("base.toml", kSmallBase);
    auto file = parse("base = \"" + base + "\"\nseeds = [1, 2]\n[grid]\nstrategy.tau = [1, 4, 16]\n", "g.toml",
                      experiment::schema());
    grid_ = resolve(std::move(*file), {"run.dir=" + folder_.file("runs")}, nullptr).value();
  }
  Folder folder_;
  ResolvedGrid grid_;
  std::vector<RunStatus> statuses_{done(0.5, 10),
                                   done(0.6, 12),
                                   done(0.9, 5000),
                                   {Status::diverged, 70, "loss is \"nan\", worker 1", "runs/g/y", ""},
                                   {},
                                   {}};
};

TEST(FlattenTest, NamesScalarsByTheirPathAndLeavesListsOut) {
  const auto json = nlohmann::ordered_json::parse(
      R"({"a": 1, "test": {"loss": null, "top": {"k": 2}}, "per_worker": [1], "waits": {"workers": 2, "seconds": [[1]]}})");
  std::vector<std::string> keys;
  for (const auto& [key, value] : flatten(json)) keys.push_back(key + "=" + value.dump());
  EXPECT_THAT(keys, ElementsAre("a=1", "test.loss=null", "test.top.k=2"));
}

TEST(MetricNamesTest, AreTheNumbersOfEverySummary) {
  const auto names = metric_names();
  for (const char* name :
       {"test.accuracy", "test.top5", "train.images_per_s", "wall_s", "time.wait_s", "exchange.staleness_mean"})
    EXPECT_THAT(names, Contains(name));
  EXPECT_THAT(names, Not(Contains("center_hash")));
}

TEST_F(ResultsTest, CsvHasARowPerRun) {
  EXPECT_EQ(to_csv(grid_, statuses_),
            "strategy.tau,seed,status,exit_code,error,run,wall_s,test.loss,test.accuracy\n"
            "1,1,done,0,,runs/g/x,10.0,,0.5\n"
            "1,2,done,0,,runs/g/x,12.0,,0.6\n"
            "4,1,done,0,,runs/g/x,5000.0,,0.9\n"
            "4,2,diverged,70,\"loss is \"\"nan\"\", worker 1\",runs/g/y,,,\n"
            "16,1,waiting,,,,,,\n"
            "16,2,waiting,,,,,,\n");
}

TEST_F(ResultsTest, JsonLinesHaveSettingsAndSummaryWhole) {
  const auto text = to_jsonl(grid_, statuses_);
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["name"], "tau=1_seed=1");
  EXPECT_EQ(first["settings"], (nlohmann::json{{"strategy.tau", 1}}));
  EXPECT_EQ(first["seed"], 1);
  EXPECT_EQ(first["strategy"], "easgd");
  EXPECT_EQ(first["summary"]["test"]["accuracy"], 0.5);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
}

TEST_F(ResultsTest, WritesBothFiles) {
  std::filesystem::create_directories(grid_.directory);
  ASSERT_TRUE(write_results(grid_, statuses_).has_value());
  EXPECT_EQ(folder_.read("runs/g/results.csv"), to_csv(grid_, statuses_));
  EXPECT_EQ(folder_.read("runs/g/results.jsonl"), to_jsonl(grid_, statuses_));
}

TEST_F(ResultsTest, TheTableTakesSeedsTogetherAndSortsBestFirst) {
  // tau 1: accuracy (0.5 + 0.6) / 2 = 0.55, deviation 0.1 / √2 = 0.0707; seconds 11 ± √2.
  EXPECT_EQ(table(grid_, statuses_, "test.accuracy"),
            "tau  done  test.accuracy  test.loss  train.images_per_s  wall_s\n"
            "4    1/2   0.9            -          -                   5,000\n"
            "1    2/2   0.55 ± 0.071   -          -                   11 ± 1.4\n"
            "16   0/2   -              -          -                   -\n");
  const auto by_time = table(grid_, statuses_, "wall_s");
  EXPECT_LT(by_time.find("11 ± 1.4"), by_time.find("5,000"));
}

}  // namespace
}  // namespace troupe::grid
