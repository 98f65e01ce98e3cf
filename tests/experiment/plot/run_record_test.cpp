#include "experiment/plot/run_record.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::plot {

using tests::Folder;
namespace {

using testing::ElementsAre;

std::string epoch(int number, double train_s, const std::string& loss = "0.5") {
  return R"({"kind":"epoch","epoch":)" + std::to_string(number) + R"(,"train":{"loss":)" + loss +
         R"(,"accuracy":0.8},"test":{"loss":0.4,"accuracy":0.9},"train_s":)" + std::to_string(train_s) + "}\n";
}
const std::string kStarted = R"({"kind":"started","t":0,"strategy":"easgd"})"
                             "\n";

class RunRecordTest : public testing::Test {
 protected:
  core::Result<RunRecord> read(const std::string& metrics, const std::string& summary = "{}") const {
    folder_.write("20260102-030405-my-run/metrics.jsonl", metrics);
    folder_.write("20260102-030405-my-run/summary.json", summary);
    return read_run(folder_.file("20260102-030405-my-run"));
  }
  static std::vector<double> seconds(const RunRecord& run) {
    std::vector<double> all;
    for (const auto& point : run.epochs) all.push_back(point.seconds);
    return all;
  }
  Folder folder_;
};

TEST_F(RunRecordTest, ReadsEpochsAndPassesOverBrokenLines) {
  const auto run = read(kStarted + epoch(1, 2, "null") + "{\"kind\":\"ep\n" + epoch(2, 4));
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->label, "my-run");
  EXPECT_EQ(run->strategy, "easgd");
  ASSERT_EQ(run->epochs.size(), 2u);
  EXPECT_TRUE(std::isnan(run->epochs[0].train_loss));
  EXPECT_EQ(run->epochs[1].test_accuracy, 0.9);
  EXPECT_FALSE(run->waits.has_value() || run->staleness.has_value());
}

TEST_F(RunRecordTest, ResumedEpochsReplaceThoseAfterTheCheckpoint) {
  // Epoch 2 is trained twice. The second process counts its seconds from zero …
  const auto anew = read(kStarted + epoch(1, 2) + epoch(2, 4) + kStarted + epoch(2, 3) + epoch(3, 5));
  EXPECT_THAT(seconds(*anew), ElementsAre(2, 5, 7));
  // … or continues those of the checkpoint.
  const auto onward = read(kStarted + epoch(1, 2) + epoch(2, 4) + kStarted + epoch(3, 6));
  EXPECT_THAT(seconds(*onward), ElementsAre(2, 4, 6));
}

TEST_F(RunRecordTest, ReadsWaitsAndStaleness) {
  const auto run =
      read(kStarted, R"({"strategy": "ssp", "waits": {"workers": 2, "servers": 1, "seconds": [[0, 1, 2], [3, 0, 4]]},
    "staleness": {"edges": [0, 1, 2, 4], "workers": [[5, 0, 1, 0], []]}})");
  ASSERT_TRUE(run->waits.has_value() && run->staleness.has_value());
  EXPECT_THAT(run->waits->seconds, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 0, 4)));
  EXPECT_THAT(run->staleness->workers, ElementsAre(ElementsAre(5, 0, 1, 0), ElementsAre(0, 0, 0, 0)));
}

TEST_F(RunRecordTest, EmptyRecordsAreLeftOut) {
  const auto run = read(kStarted, R"({"waits": {"workers": 1, "servers": 0, "seconds": [[0]]},
    "staleness": {"edges": [0, 1], "workers": [[0, 0]]}})");
  EXPECT_FALSE(run->waits.has_value() || run->staleness.has_value());
  const auto odd = read(kStarted, R"({"waits": {"workers": 2, "servers": 0, "seconds": [[1]]}, "staleness": 3})");
  EXPECT_FALSE(odd->waits.has_value() || odd->staleness.has_value());
}

TEST_F(RunRecordTest, OtherDirectoriesAreNoRun) {
  const auto run = read_run(folder_.file(""));
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, core::Errc::config);
}

TEST(LabelTest, DropsTheTimeOnly) {
  EXPECT_EQ(label_of("runs/20260102-030405-a-b/"), "a-b");
  EXPECT_EQ(label_of("runs/2026-a-b"), "2026-a-b");
}

}  // namespace
}  // namespace troupe::plot
