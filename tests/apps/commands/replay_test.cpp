// `troupe replay` reports what it compared. If it compared nothing, it ends with an error.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

class ReplayTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto trained = troupe({"train", config_, "--quiet", "--set", "run.dir=" + folder_.file("runs")});
    ASSERT_EQ(trained.code, 0) << trained.err;
    run_ = std::filesystem::directory_iterator(folder_.file("runs"))->path().string();
  }

  Outcome replayed(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"replay", run_});
    return troupe(std::move(more));
  }
  void cut(std::uintmax_t bytes) const { std::filesystem::resize_file(run_ + "/journal-0001.bin", bytes); }

  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", tests::small_config("[run]\nepochs = 1", R"([train]
lr = 0.1
[strategy]
name = "easgd"
[cluster]
workers = 2
)"));
  std::string run_;
};

TEST_F(ReplayTest, AWholeJournalIsVerified) {
  const auto replay = replayed({"--json"});
  ASSERT_EQ(replay.code, 0) << replay.err;
  const auto json = nlohmann::json::parse(replay.out);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["segments"], 1);
  EXPECT_EQ(json["missing"], 0);
  EXPECT_GT(json["events"], 100);
  EXPECT_EQ(json["replayed"], json["events"]);
  EXPECT_GT(json["hashes"], 0);
  EXPECT_EQ(json["steps"], 60);
  EXPECT_EQ(json["recorded"]["center_hash"], json["center_hash"]);
  EXPECT_EQ(json["recorded"]["test_loss"], json["test"]["loss"]);
  const auto text = replayed();
  EXPECT_EQ(text.code, 0) << text.err;
  const auto recorded = text.out.find("recorded  60 steps, "), again = text.out.find("replayed  60 steps, ");
  ASSERT_NE(recorded, std::string::npos) << text.out;
  ASSERT_NE(again, std::string::npos) << text.out;
  const auto result = [&](std::size_t at) {
    const auto begin = text.out.find("60 steps", at);
    return text.out.substr(begin, text.out.find('\n', at) - begin);
  };
  EXPECT_EQ(result(recorded), result(again));
  EXPECT_NE(text.out.find("verified from beginning to end"), std::string::npos) << text.out;
}

TEST_F(ReplayTest, AReplayCanStopAtAStep) {
  // On a busy machine one of them may take nearly all batches.
  const auto summary = nlohmann::json::parse(std::ifstream(run_ + "/summary.json"));
  const auto worker = summary["per_worker"][1]["steps"].get<int>() >= 5 ? "worker1" : "worker0";
  const auto replay = replayed({"--until", fmt::format("{}:5", worker), "--json"});
  ASSERT_EQ(replay.code, 0) << replay.err;
  const auto json = nlohmann::json::parse(replay.out);
  EXPECT_EQ(json["until"], fmt::format("{}:5", worker));
  EXPECT_EQ(json["segment"], 1);
  EXPECT_EQ(json["members"][0]["step"], 5);
  const auto text = replayed({"--until", "5"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("segment 1: worker 0 has consumed "), std::string::npos) << text.out;
  EXPECT_EQ(replayed({"--until", "nonsense"}).code, 2);
  EXPECT_EQ(replayed({"--until", "100000"}).code, 2);
  EXPECT_EQ(replayed({"--until", "5", "--set", "train.lr=1"}).code, 2);
}

TEST_F(ReplayTest, AReplayThatComparesNothingFails) {
  cut(12);
  for (const bool as_json : {false, true}) {
    const auto replay = replayed(as_json ? std::vector<std::string>{"--json"} : std::vector<std::string>{});
    EXPECT_EQ(replay.code, 65) << replay.out << replay.err;
    EXPECT_NE(replay.err.find("nothing was verified: 0 of 0 events"), std::string::npos) << replay.err;
    if (!as_json) {
      EXPECT_EQ(replay.out.find("verified from beginning"), std::string::npos) << replay.out;
      continue;
    }
    const auto json = nlohmann::json::parse(replay.out);
    EXPECT_EQ(json["complete"], false);
    EXPECT_EQ(json["events"], 0);
    EXPECT_EQ(json["hashes"], 0);
  }
  const auto changed = replayed({"--set", "train.lr=0.05"});
  EXPECT_EQ(changed.code, 65) << changed.out << changed.err;
}

/// The hash of the end is missing, the earlier ones are there: as after a killed process.
TEST_F(ReplayTest, APartOfAJournalIsVerifiedAndReportedAsAPart) {
  cut(std::filesystem::file_size(run_ + "/journal-0001.bin") - 1);
  const auto replay = replayed({"--json"});
  ASSERT_EQ(replay.code, 0) << replay.err;
  const auto json = nlohmann::json::parse(replay.out);
  EXPECT_EQ(json["complete"], false);
  EXPECT_GT(json["hashes"], 0);
  EXPECT_NE(replayed().out.find("not the whole run"), std::string::npos);
}

TEST_F(ReplayTest, OtherSettingsCompareNoHashAndReportThat) {
  const auto replay = replayed({"--set", "strategy.alpha=0.1", "--json"});
  ASSERT_EQ(replay.code, 0) << replay.err;
  const auto json = nlohmann::json::parse(replay.out);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["hashes"], 0);
}

TEST_F(ReplayTest, OptionOfTheScheduleIsABadConfigurationAndTheHelpListsTheOthers) {
  const auto refused = replayed({"--set", "strategy.tau=8"});
  EXPECT_EQ(refused.code, 78) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("--set strategy.tau=8: a replay keeps the recorded schedule"), std::string::npos)
      << refused.err;
  const auto help = troupe({"replay", "--help"});
  EXPECT_NE(help.out.find("It can change train.*"), std::string::npos) << help.out;
}

}  // namespace
}  // namespace troupe::apps
