// `troupe plot` on a run and a grid of the real program.
#include <filesystem>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPlotBase =
    "[run]\nepochs = 2\ncheckpoint_every = \"never\"\n[model]\nname = \"mlp\"\nwidths = [16]\n[data]\nname = "
    "\"glyphs\"\nbatch = 20\ntrain_samples = 400\ntest_samples = 100\n[strategy]\nname = \"easgd\"\n";

TEST(PlotTest, DrawsGridsAndTheirRuns) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const TemporaryDirectory folder;
  const auto base = folder.write("base.toml", kPlotBase);
  const auto file =
      folder.write("g.toml", "base = \"" + base + "\"\n[grid]\nstrategy.tau = [1, 4]\nstrategy.alpha = [0.2, 0.5]\n");
  ASSERT_EQ(troupe({"grid", file, "--quiet", "--set", "run.dir=" + folder.file("runs")}).code, 0);
  const auto grid = troupe({"plot", folder.file("runs/g"), "--format", "png,svg"});
  ASSERT_EQ(grid.code, 0) << grid.err;
  for (const char* name :
       {"heat-test-accuracy-alpha-tau.png", "heat-test-accuracy-alpha-tau.svg", "lines-test-accuracy-tau.png"}) {
    EXPECT_THAT(grid.out, HasSubstr(name));
    EXPECT_TRUE(std::filesystem::exists(folder.file("runs/g/plots/") + name)) << name;
  }
  std::vector<std::string> plot{"plot", "--output", folder.file("pictures")};
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("runs/g")))
    if (std::filesystem::exists(entry.path() / "metrics.jsonl")) plot.push_back(entry.path());
  const auto runs = troupe(plot);
  ASSERT_EQ(runs.code, 0) << runs.err;
  plot.insert(plot.end(), {"--over", "samples,samples,epochs", "--keep"});
  ASSERT_EQ(troupe(plot).code, 0);
  const auto script = contents(folder.file("pictures/gnuplot/loss.gp"));
  // In this order, once each, in thousands nowhere: 800 samples.
  EXPECT_NE(script.find("set xlabel 'epochs'"), std::string::npos);
  EXPECT_EQ(script.find("set xlabel 'samples seen'"), script.rfind("set xlabel 'samples seen'"));
  EXPECT_LT(script.find("set xlabel 'samples seen'"), script.find("set xlabel 'epochs'"));
  EXPECT_THAT(script, Not(HasSubstr("training time")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("pictures/loss.png")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("pictures/accuracy.png")));
}

TEST(PlotTest, DrawsAGridThatVariesOnlyTheStrategy) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const TemporaryDirectory folder;
  const auto base = folder.write("base.toml", kPlotBase);
  const auto file =
      folder.write("g.toml", "base = \"" + base + "\"\nseeds = [1, 2]\n[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\n");
  ASSERT_EQ(troupe({"grid", file, "--quiet", "--set", "run.dir=" + folder.file("runs"), "--set", "run.epochs=1"}).code,
            0);
  const auto grid = troupe({"plot", folder.file("runs/g")});
  ASSERT_EQ(grid.code, 0) << grid.err;
  for (const char* name : {"bars-test-accuracy.png", "loss.png", "accuracy.png"}) {
    EXPECT_THAT(grid.out, HasSubstr(name));
    EXPECT_TRUE(std::filesystem::exists(folder.file("runs/g/plots/") + name)) << name;
  }
}

TEST(PlotTest, RunsOfOneNameInTwoPlacesHaveTheirOwnPictures) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const TemporaryDirectory folder;
  const auto base = folder.write("base.toml", kPlotBase);
  ASSERT_EQ(troupe({"train", base, "--quiet", "--set", "run.dir=" + folder.file("a")}).code, 0);
  const auto run = std::filesystem::directory_iterator(folder.file("a"))->path();
  std::filesystem::create_directories(folder.file("b"));
  std::filesystem::copy(run, folder.file("b/" + run.filename().string()), std::filesystem::copy_options::recursive);
  const auto outcome =
      troupe({"plot", run.string(), folder.file("b/" + run.filename().string()), "--output", folder.file("pictures")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::set<std::string> named;
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) named.insert(line);
  EXPECT_EQ(named.size(), count) << outcome.out;
  EXPECT_GE(count, 4u) << outcome.out;
}

TEST(PlotTest, WithoutADirectoryForTemporaryFilesItIsExit74) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const TemporaryDirectory folder;
  const auto base = folder.write("base.toml", kPlotBase);
  ASSERT_EQ(troupe({"train", base, "--quiet", "--set", "run.dir=" + folder.file("a")}).code, 0);
  const auto run = std::filesystem::directory_iterator(folder.file("a"))->path().string();
  const auto outcome = run_program({"env", "TMPDIR=" + folder.file("none"), TROUPE_BINARY, "plot", run});
  EXPECT_EQ(outcome.code, 74) << outcome.err;
  EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
}

TEST(PlotTest, ErrorsNameTheProblem) {
  const TemporaryDirectory folder;
  const auto nothing = troupe({"plot", folder.file("")});
  EXPECT_EQ(nothing.code, 78);
  EXPECT_TRUE(is_one_line(nothing)) << nothing.err;
  EXPECT_EQ(troupe({"plot"}).code, 2);
  EXPECT_EQ(troupe({"plot", "x", "--format", "bmp"}).code, 2);
  EXPECT_EQ(troupe({"plot", "x", "--over", "sample"}).code, 2);
  EXPECT_EQ(troupe({"plot", "x", "--metric", "acuracy"}).code, 2);
}

}  // namespace
}  // namespace troupe::apps
