// `troupe compare` on runs of the real program, and its text on records made by hand.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/reports/comparison.hpp"
#include "experiment/settings.hpp"
#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kBase =
    "[run]\nepochs = 1\ncheckpoint_every = \"never\"\n[model]\nname = \"mlp\"\nwidths = [16]\n[data]\nname = "
    "\"glyphs\"\nbatch = 20\ntrain_samples = 400\ntest_samples = 100\n[strategy]\nname = \"easgd\"\ntau = 4\n";

/// The directories of the runs in `folder`, sorted.
std::vector<std::string> runs_in(const std::string& folder) {
  std::vector<std::string> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(entry.path() / "metrics.jsonl")) runs.push_back(entry.path());
  std::ranges::sort(runs);
  return runs;
}

ComparedRun run_of(const std::string& label, const std::vector<std::string>& overrides) {
  auto config = core::Config::parse(experiment::schema(), kBase, "base.toml", overrides);
  EXPECT_TRUE(config.has_value()) << config.error().message;
  ComparedRun run{"runs/" + label, std::move(*config), nullptr, {}};
  run.record.label = label;
  run.record.outcome = "done";
  run.summary = {
      {"epochs", 3}, {"test", {{"accuracy", 0.875}, {"loss", 0.25}}}, {"train", {{"images_per_s", 12345.6}}}};
  return run;
}

TEST(ComparisonTest, ShowsOnlyOptionsThatDiffer) {
  const std::vector<ComparedRun> runs{run_of("a", {}),
                                      run_of("b", {"strategy.name=bsp", "run.name=b", "train.lr=0.5"})};
  const auto keys = differing_options(runs);
  EXPECT_THAT(keys, testing::IsSupersetOf({"train.lr", "strategy.name", "strategy.tau"}));
  EXPECT_THAT(keys, Not(testing::Contains("run.name")));
  EXPECT_THAT(keys, Not(testing::Contains("data.batch")));
  const auto text = comparison_text(runs, 0);
  EXPECT_THAT(text, testing::ContainsRegex("strategy.tau +4 +-\n")) << "bsp does not read it";
  EXPECT_THAT(text, testing::ContainsRegex("test.accuracy +0.875 +0.875\n"));
  EXPECT_THAT(text, testing::ContainsRegex("train.images_per_s +12,346 +12,346\n"));
  EXPECT_THAT(text, testing::ContainsRegex("wall_s +- +-\n"));
}

TEST(ComparisonTest, EqualRunsSaySo) {
  EXPECT_THAT(comparison_text({run_of("a", {}), run_of("b", {"run.dir=elsewhere"})}, 0),
              HasSubstr("no option differs\n"));
}

TEST(ComparisonTest, ARunThatStillTrainsShowsItsLastEvaluation) {
  auto run = run_of("b", {});
  run.summary = nullptr;
  run.record.outcome.clear();
  run.record.epochs = {{1, 2, 0.5, 0.75, 0.8, 0.625}};
  const auto text = comparison_text({run_of("a", {}), run}, 0);
  EXPECT_THAT(text, testing::ContainsRegex("ended +done +not yet\n"));
  EXPECT_THAT(text, testing::ContainsRegex("test.accuracy +0.875 +0.625\n"));
}

TEST(ComparisonTest, NoLineIsWiderThanTheTerminal) {
  std::vector<ComparedRun> runs;
  for (int k = 0; k < 12; ++k)
    runs.push_back(run_of(fmt::format("a-run-with-a-long-name-{}", k), {fmt::format("train.lr=0.{}", k + 1)}));
  const auto text = comparison_text(runs, 60);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
  EXPECT_THAT(text, HasSubstr("run 12: runs/a-run-with-a-long-name-11\n"));
  EXPECT_THAT(text, HasSubstr("0.12"));
}

TEST(CompareTest, ShowsOptionsResultsAndOnePicture) {
  const TemporaryDirectory folder;
  const auto base = folder.write("base.toml", kBase);
  const auto file = folder.write("g.toml", "base = \"" + base + "\"\n[grid]\nstrategy.tau = [1, 2]\n");
  ASSERT_EQ(troupe({"grid", file, "--quiet", "--set", "run.dir=" + folder.file("runs")}).code, 0);
  ASSERT_EQ(
      troupe({"train", base, "--quiet", "--set", "run.dir=" + folder.file("runs"), "--set", "strategy.name=bsp"}).code,
      0);
  const auto other = runs_in(folder.file("runs"));
  ASSERT_EQ(other.size(), 1u);

  const auto plain = troupe({"compare", folder.file("runs/g"), other[0], "--no-picture"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, testing::ContainsRegex("strategy.name +easgd +easgd +bsp\n"));
  EXPECT_THAT(plain.out, testing::ContainsRegex("strategy.tau +1 +2 +-\n"));
  EXPECT_THAT(plain.out, testing::ContainsRegex("ended +done +done +done\n"));

  const auto runs = runs_in(folder.file("runs/g"));
  ASSERT_EQ(runs.size(), 2u);
  const auto json = troupe({"compare", runs[0], runs[1], "--json", "--no-picture"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["differ"], nlohmann::json::array({"strategy.tau"}));
  ASSERT_EQ(parsed["runs"].size(), 2u);
  EXPECT_EQ(parsed["runs"][0]["run"], runs[0]);
  EXPECT_EQ(parsed["runs"][0]["options"]["strategy.tau"], 1);
  EXPECT_EQ(parsed["runs"][1]["summary"]["samples"], 400);
  EXPECT_TRUE(parsed["pictures"].empty());

  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const auto drawn = troupe({"compare", runs[0], other[0], "--output", folder.file("pictures")});
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_TRUE(drawn.out.ends_with("\n" + folder.file("pictures/compare.png") + "\n")) << drawn.out;
  EXPECT_TRUE(std::filesystem::exists(folder.file("pictures/compare.png")));
}

TEST(CompareTest, ErrorsNameTheProblem) {
  const TemporaryDirectory folder;
  const auto base = folder.write("base.toml", kBase);
  ASSERT_EQ(troupe({"train", base, "--quiet", "--set", "run.dir=" + folder.file("runs")}).code, 0);
  const auto run = runs_in(folder.file("runs")).at(0);
  const auto one = troupe({"compare", run});
  EXPECT_EQ(one.code, 2);
  EXPECT_TRUE(is_one_line(one)) << one.err;
  const auto copy = folder.file("damaged/" + std::filesystem::path(run).filename().string());
  std::filesystem::create_directories(folder.file("damaged"));
  std::filesystem::copy(run, copy, std::filesystem::copy_options::recursive);
  std::ofstream(copy + "/summary.json") << "{";
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"compare", run, copy, "--no-picture"}, {"plot", run, copy}}) {
    const auto damaged = troupe(arguments);
    EXPECT_EQ(damaged.code, 65) << damaged.err;
    EXPECT_TRUE(is_one_line(damaged)) << damaged.err;
    EXPECT_THAT(damaged.err, HasSubstr(copy + "/summary.json"));
  }
  const auto none = troupe({"compare", run, folder.file("nothing")});
  EXPECT_EQ(none.code, 78);
  EXPECT_TRUE(is_one_line(none)) << none.err;
  EXPECT_THAT(none.err, HasSubstr(folder.file("nothing")));
  const auto no_gnuplot = run_program({"env", "PATH=/nowhere", TROUPE_BINARY, "compare", run, run});
  EXPECT_EQ(no_gnuplot.code, 78) << no_gnuplot.err;
  EXPECT_TRUE(is_one_line(no_gnuplot)) << no_gnuplot.err;
  EXPECT_THAT(no_gnuplot.err, HasSubstr("--no-picture"));
}

}  // namespace
}  // namespace troupe::apps
