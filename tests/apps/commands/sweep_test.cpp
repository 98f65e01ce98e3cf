// Whole sweeps of the real program.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

/// bsp and fixed kernels: the same settings give the same score.
const std::string kBaseOfSweeps = tests::tiny_config("[run]\nepochs = 4", R"([train]
momentum = 0.5
lr_policy = "polynomial"
[strategy]
name = "bsp"
[cluster]
kernels = "fixed"
)");

class SweepTest : public testing::Test {
 protected:
  std::vector<std::string> sweep(const std::string& name, const std::string& more = "",
                                 std::vector<std::string> flags = {}) const {
    const auto file = folder_.write(name + ".toml", "base = \"" + base_ + "\"\n[sweep]\nruns = 6\neta = 2\n" + more +
                                                        "[grid]\ntrain.lr = { log = [0.01, 2] }\n");
    std::vector<std::string> all{"grid", file, "--set", "run.dir=" + folder_.file("runs")};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  Json record(const std::string& name) const {
    return Json::parse(contents(folder_.file("runs/" + name + "/sweep.json")));
  }
  std::vector<Json> decisions(const std::string& name) const {
    std::istringstream log(contents(folder_.file("runs/" + name + "/sweep.jsonl")));
    std::vector<Json> all;
    for (std::string line; std::getline(log, line);) {
      auto json = Json::parse(line);
      if (json["kind"] != "begin") continue;
      json.erase("t");
      all.push_back(std::move(json));
    }
    return all;
  }
  std::size_t directories(const std::string& name) const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("runs/" + name)))
      count += entry.is_directory();
    return count;
  }

  TemporaryDirectory folder_;
  std::string base_ = folder_.write("base.toml", kBaseOfSweeps);
};

TEST_F(SweepTest, SearchesStopsEarlyAndReports) {
  const auto outcome = troupe(sweep("a"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("run  lr"));
  EXPECT_THAT(outcome.out, HasSubstr("stopped"));
  EXPECT_THAT(outcome.out, HasSubstr(" epochs trained, "));
  EXPECT_THAT(outcome.err, HasSubstr("going on with "));
  const auto json = record("a");
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["rungs"], Json({1, 2, 4}));
  EXPECT_EQ(json["trials"].size(), 6U);
  EXPECT_EQ(directories("a"), 6U);
  const auto& best = json["trials"][json["ranking"][0].get<std::size_t>()];
  EXPECT_EQ(best["scores"].size(), 3U);
  const auto summary = Json::parse(contents(best["directory"].get<std::string>() + "/summary.json"));
  EXPECT_EQ(summary["epochs"], 4);
  EXPECT_EQ(summary["test"]["accuracy"], best["scores"][2]);

  // The same again has nothing to do; more runs go on from there.
  const auto again = troupe(sweep("a", "", {"--json", "--quiet"}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["trials"], json["trials"]);
  const auto sorted = troupe(sweep("a", "", {"--quiet", "--sort", "train.images_per_s"}));
  ASSERT_EQ(sorted.code, 0) << sorted.err;
  EXPECT_THAT(sorted.out, HasSubstr("test.accuracy  train.images_per_s  status"));
  const auto more = troupe(sweep("a", "", {"--dry-run"}));
  EXPECT_THAT(more.out, HasSubstr("goes on after 6 runs"));
}

/// The best run reaches what the same settings reach in one piece: its learning rate follows the whole run's schedule.
TEST_F(SweepTest, APromotedRunEqualsOneThatWasNeverStopped) {
  ASSERT_EQ(troupe(sweep("a")).code, 0);
  const auto json = record("a");
  const auto& best = json["trials"][json["ranking"][0].get<std::size_t>()];
  const auto outcome = troupe({"train", base_, "--quiet", "--json", "--set", "run.dir=" + folder_.file("alone"),
                               "--set", "train.lr=" + best["settings"]["train.lr"].dump()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto parts = Json::parse(contents(best["directory"].get<std::string>() + "/summary.json"));
  EXPECT_EQ(Json::parse(outcome.out)["center_hash"], parts["center_hash"]);
}

TEST_F(SweepTest, AKilledSweepMakesTheSameDecisionsAsAWholeOne) {
  ASSERT_EQ(troupe(sweep("whole")).code, 0);
  const std::string lines[] = {"starting 001", "going on with ", "starting 004"};
  for (const auto& line : lines) {
    const auto all = sweep("killed", "", {"--plain"});
    auto arguments = std::vector<std::string>{TROUPE_BINARY};
    arguments.insert(arguments.end(), all.begin(), all.end());
    run_until(arguments, line, [](pid_t process) { ::kill(process, SIGKILL); });
  }
  const auto outcome = troupe(sweep("killed"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(decisions("killed"), decisions("whole"));
  for (const auto& trial : record("killed")["trials"]) {
    const auto summary = Json::parse(contents(trial["directory"].get<std::string>() + "/summary.json"));
    EXPECT_EQ(summary["samples"], 400 * summary["epochs"].get<int>()) << "an epoch was trained twice";
  }
}

TEST_F(SweepTest, CtrlCSavesAndTheSameCommandGoesOn) {
  const auto all = sweep("a", "", {"--plain"});
  auto arguments = std::vector<std::string>{TROUPE_BINARY};
  arguments.insert(arguments.end(), all.begin(), all.end());
  const auto outcome = run_until(arguments, "starting 002", [](pid_t process) { ::kill(process, SIGINT); });
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the same command goes on"));
  ASSERT_EQ(troupe(sweep("a")).code, 0);
  EXPECT_EQ(record("a")["state"], "finished");
}

TEST_F(SweepTest, OtherRangesInTheSameDirectoryAreRefused) {
  ASSERT_EQ(troupe(sweep("a")).code, 0);
  const auto outcome = troupe(sweep("a", "least = 2\n"));
  EXPECT_EQ(outcome.code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("were begun with other ranges"));
}

TEST_F(SweepTest, WrongFilesAreOneLine) {
  const auto outcome = troupe(sweep("a", "bogus = 1\n"));
  EXPECT_EQ(outcome.code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("a.toml:5: [sweep] has no key \"bogus\""));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
  EXPECT_EQ(troupe(sweep("a", "", {"--jobs", "2", "--nodes", "127.0.0.1:1"})).code, 2);
  EXPECT_EQ(troupe(sweep("a", "", {"--nodes", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "--nodes-per-run", "2"})).code, 2);
}

}  // namespace
}  // namespace troupe::apps
