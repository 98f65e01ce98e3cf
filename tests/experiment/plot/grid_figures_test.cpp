#include "experiment/plot/grid_figures.hpp"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::plot {

using tests::Folder;
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string row(const std::string& base, const std::string& strategy, const std::string& settings, double accuracy,
                const std::string& status = "done", int seed = 1) {
  return nlohmann::json{{"name", "n"},
                        {"base", base},
                        {"settings", nlohmann::json::parse(settings)},
                        {"strategy", strategy},
                        {"status", status},
                        {"seed", seed},
                        {"directory", nullptr},
                        {"summary", {{"test", {{"accuracy", accuracy}}}}}}
             .dump() +
         "\n";
}

class GridFiguresTest : public testing::Test {
 protected:
  core::Result<GridRecord> read(const std::string& rows) const {
    folder_.write("my-grid/results.jsonl", rows);
    return read_grid(folder_.file("my-grid"));
  }
  static std::vector<std::string> names(const std::vector<Figure>& figures) {
    std::vector<std::string> all;
    for (const auto& figure : figures) all.push_back(figure.name);
    return all;
  }
  Folder folder_;
};

TEST_F(GridFiguresTest, ADirectoryThatCannotBeLookedAtIsAnIoError) {
  EXPECT_TRUE(read(row("b.toml", "easgd", R"({"train.lr": 1})", 0.5)));
  EXPECT_TRUE(is_grid(folder_.file("my-grid")).value());
  EXPECT_FALSE(is_grid(folder_.file("none")).value());
  std::filesystem::create_directories(folder_.file("other"));
  std::filesystem::create_symlink("results.jsonl", folder_.file("other/results.jsonl"));  // to itself
  const auto other = is_grid(folder_.file("other"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::Errc::io);
  EXPECT_THAT(other.error().message, HasSubstr(folder_.file("other/results.jsonl")));
}

TEST_F(GridFiguresTest, NoTwoFiguresHaveOneName) {
  // Both keys end in "name", and both strategies give the same file name.
  std::string rows;
  for (const auto* strategy : {"a/b", "a b"})
    for (const auto* data : {"mnist", "glyphs"})
      for (const auto* model : {"mlp", "lenet"})
        rows += row("b.toml", strategy,
                    fmt::format(R"({{"data.name": "{}", "model.name": "{}", "train.lr": 1}})", data, model), 0.5);
  const auto grid = read(rows);
  ASSERT_TRUE(grid) << grid.error().message;
  EXPECT_THAT(names(heat_maps(*grid, "test.accuracy")), ElementsAre("heat-test-accuracy-data-name-model-name-a-b",
                                                                    "heat-test-accuracy-data-name-model-name-a-b-2"));
  EXPECT_THAT(names(lines(*grid, "test.accuracy")),
              ElementsAre("lines-test-accuracy-data-name", "lines-test-accuracy-model-name"));
  for (const auto& figure : heat_maps(*grid, "test.accuracy")) {
    ASSERT_EQ(figure.data.size(), 1u);
    EXPECT_EQ(figure.data.begin()->first, figure.name + ".dat") << "the data too has a file of its own";
  }
}

TEST_F(GridFiguresTest, ReadsVariedKeysAndSkipsFailedRuns) {
  const auto grid =
      read(row("b.toml", "easgd", R"({"strategy.tau": 16, "cluster.slowdown": [1, 4], "train.lr": 1})", 0.5) +
           row("b.toml", "easgd", R"({"strategy.tau": 4, "cluster.slowdown": [1, 1], "train.lr": 1})", 0.6) +
           row("b.toml", "easgd", R"({"strategy.tau": 8})", 0.1, "failed"));
  ASSERT_TRUE(grid.has_value()) << grid.error().message;
  EXPECT_EQ(grid->name, "my-grid");
  EXPECT_THAT(grid->series, ElementsAre("easgd"));
  ASSERT_EQ(grid->keys.size(), 2u);
  EXPECT_EQ(grid->keys[0].key, "cluster.slowdown");
  EXPECT_THAT(grid->keys[0].values, ElementsAre("[1,4]", "[1,1]"));
  EXPECT_THAT(grid->keys[1].values, ElementsAre("4", "16"));
  EXPECT_THAT(grid->keys[1].numbers, ElementsAre(4, 16));
  EXPECT_FALSE(read("").has_value());
}

TEST_F(GridFiguresTest, SeriesAreStrategiesOrTheirConfigurations) {
  EXPECT_THAT(read(row("a.toml", "bsp", "{}", 1) + row("b.toml", "easgd", "{}", 1))->series,
              ElementsAre("bsp", "easgd"));
  EXPECT_THAT(read(row("x/a.toml", "bsp", "{}", 1) + row("x/b.toml", "bsp", "{}", 1))->series, ElementsAre("a", "b"));
}

TEST_F(GridFiguresTest, AHeatMapHasTheMeanOverSeedsInEachCell) {
  const auto grid = read(row("a", "easgd", R"({"s.alpha": 0.1, "s.tau": 1})", 0.5) +
                         row("a", "easgd", R"({"s.alpha": 0.1, "s.tau": 1})", 0.7) +
                         row("a", "easgd", R"({"s.alpha": 0.5, "s.tau": 4})", 0.9));
  const auto figures = heat_maps(*grid, "test.accuracy");
  ASSERT_THAT(names(figures), ElementsAre("heat-test-accuracy-alpha-tau"));
  EXPECT_EQ(figures[0].data.at("heat-test-accuracy-alpha-tau.dat"), "0 0 60\n1 0 NaN\n\n0 1 NaN\n1 1 90\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("set label '60.00' at 0,0"));
}

TEST_F(GridFiguresTest, LinesAreStrategies) {
  const auto grid =
      read(row("a", "bsp", R"({"c.slowdown": [1, 1]})", 0.5) + row("a", "bsp", R"({"c.slowdown": [1, 8]})", 0.4) +
           row("a", "easgd", R"({"c.slowdown": [1, 8]})", 0.6) + row("a", "easgd", R"({"c.slowdown": [1, 8]})", 0.8));
  const auto figures = lines(*grid, "test.accuracy");
  ASSERT_THAT(names(figures), ElementsAre("lines-test-accuracy-slowdown"));
  // Two series, 0.008 of the axis apart; easgd: mean 70, deviation 10 · √2.
  EXPECT_EQ(figures[0].data.at("lines-test-accuracy-slowdown.dat"),
            "-0.004 50 0\n0.996 40 0\n\n\n1.004 70 14.1421356\n\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("set xtics ('1 1' 0, '1 8' 1)"));
  EXPECT_THAT(figures[0].script, HasSubstr("title 'easgd'"));
}

TEST_F(GridFiguresTest, OfOneStrategyLinesAreAnotherKeysValues) {
  std::string rows;
  for (const char* tau : {"1", "4", "16"})
    for (const char* alpha : {"0.1", "0.5"})
      rows += row("a", "easgd", std::string(R"({"s.alpha": )") + alpha + R"(, "s.tau": )" + tau + "}", 0.5);
  const auto figures = lines(*read(rows), "test.accuracy");
  ASSERT_THAT(names(figures), ElementsAre("lines-test-accuracy-alpha", "lines-test-accuracy-tau"));
  EXPECT_THAT(figures[1].script, HasSubstr("title 'alpha = 0.5'"));
  EXPECT_THAT(figures[1].script, HasSubstr("set logscale x"));
}

TEST_F(GridFiguresTest, WhereOnlyTheStrategyVariesItsValuesAreBars) {
  std::string rows;
  for (const int seed : {1, 2})
    for (const auto* strategy : {"bsp", "easgd", "downpour"})
      rows += row("b.toml", strategy, "{}", *strategy == 'b' ? 0.5 : 0.4 + 0.2 * seed, "done", seed);
  const auto grid = read(rows);
  EXPECT_TRUE(grid->keys.empty());
  const auto figures = bars(*grid, "test.accuracy");
  ASSERT_THAT(names(figures), ElementsAre("bars-test-accuracy"));
  for (const char* part : {"'bsp' 0, 'easgd' 1, 'downpour' 2", "'50.00'", "'70.00 ± 14.14'",
                           "my-grid: mean over 2 seeds ± standard deviation", "test accuracy [%]"})
    EXPECT_THAT(figures[0].script, HasSubstr(part));
  EXPECT_TRUE(
      bars(*read(row("b", "bsp", R"({"s.tau": 1})", 0.5) + row("b", "bsp", R"({"s.tau": 2})", 0.5)), "test.accuracy")
          .empty())
      << "another key varies: lines show it";
}

TEST_F(GridFiguresTest, WhereOnlyTheStrategyVariesItsCurvesAreMeansOverSeeds) {
  std::string rows;
  std::vector<RunRecord> runs;
  for (const int seed : {1, 2})
    for (const auto* strategy : {"bsp", "easgd"}) {
      rows += row("b.toml", strategy, "{}", 0.5, "done", seed);
      runs.emplace_back().epochs = {{1, 2, 0.5, 0.4, 0.8, 0.8 + 0.01 * seed}};
    }
  const auto figures = series_curves(*read(rows), runs);
  ASSERT_THAT(names(figures), ElementsAre("loss", "accuracy"));
  EXPECT_THAT(figures[1].data.at("accuracy.dat"), HasSubstr("1 2 81.5 0.707106781\n"));
  EXPECT_THAT(figures[1].script, HasSubstr("title 'easgd'"));
  EXPECT_THAT(figures[1].script, HasSubstr("mean over 2 seeds ± standard deviation"));
}

TEST_F(GridFiguresTest, TitleOfOneSeedNamesNoMean) {
  const auto grid = read(row("a", "easgd", R"({"s.alpha": 0.1, "s.tau": 1})", 0.5) +
                         row("a", "easgd", R"({"s.alpha": 0.5, "s.tau": 4})", 0.9));
  for (const auto& figures : {heat_maps(*grid, "test.accuracy"), lines(*grid, "test.accuracy")})
    for (const auto& figure : figures) {
      EXPECT_THAT(figure.script, Not(HasSubstr("mean"))) << figure.name;
      EXPECT_THAT(figure.script, Not(HasSubstr("±"))) << figure.name;
    }
}

TEST_F(GridFiguresTest, HeatMapsOfWaitsBeginAtZero) {
  std::string rows;
  for (const char* tau : {"1", "4"})
    for (const char* alpha : {"0.1", "0.5"})
      rows += row("a", "easgd", std::string(R"({"s.alpha": )") + alpha + R"(, "s.tau": )" + tau + "}", 0.5);
  auto grid = read(rows);
  for (auto& run : grid->runs) run.summary["time"]["wait_s"] = 3;
  EXPECT_THAT(heat_maps(*grid, "time.wait_s").at(0).script, HasSubstr("set cbrange [0:3]"));
}

TEST_F(GridFiguresTest, AStrategyWithoutTheKeyIsAConstantLine) {
  const auto grid = read(row("a", "bsp", "{}", 0.5) + row("a", "easgd", R"({"strategy.tau": 1})", 0.6) +
                         row("a", "easgd", R"({"strategy.tau": 4})", 0.7));
  const auto figures = lines(*grid, "test.accuracy");
  ASSERT_THAT(names(figures), ElementsAre("lines-test-accuracy-tau"));
  EXPECT_THAT(figures[0].script, HasSubstr("title 'bsp (has no tau)'"));
  EXPECT_THAT(figures[0].script, HasSubstr("title 'easgd'"));
}

TEST_F(GridFiguresTest, RunsAreFoundWhereTheGridIs) {
  auto text = row("a", "bsp", "{}", 0.5);
  text.replace(text.find("null"), 4, "\"old/place/20260102-030405-bsp\"");
  EXPECT_EQ(read(text)->runs.at(0).directory, folder_.file("my-grid/20260102-030405-bsp"));
}

TEST(UnitTest, AxisLabelsHaveTheirUnits) {
  EXPECT_EQ(unit_of("test.accuracy").label, "test accuracy [%]");
  EXPECT_EQ(unit_of("time.wait_s").label, "time wait [s]");
  EXPECT_EQ(unit_of("exchange.staleness_mean").label, "exchange staleness mean [versions]");
  EXPECT_EQ(unit_of("train.images_per_s").label, "training speed [images/s]");
}

}  // namespace
}  // namespace troupe::plot
