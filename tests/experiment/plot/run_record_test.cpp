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
std::string worker(int rank, int samples, double compute_s, const std::string& loss) {
  return R"({"kind":"worker","worker":)" + std::to_string(rank) + R"(,"samples":)" + std::to_string(samples) +
         R"(,"compute_s":)" + std::to_string(compute_s) +
         R"(,"exchange_s":0,"wait_s":0,"load_s":0,"recent":{"samples":50,"loss":)" + loss + R"(,"accuracy":0.5}})" +
         "\n";
}
std::string worker(int rank, int samples, double compute_s, double loss) {
  return worker(rank, samples, compute_s, std::to_string(loss));
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

TEST_F(RunRecordTest, ReadsEpochsUntilALineThatWasCutOff) {
  const auto run = read(kStarted + epoch(1, 2, "null") + epoch(2, 4) + "{\"kind\":\"ep");
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->label, "my-run");
  EXPECT_EQ(run->strategy, "easgd");
  ASSERT_EQ(run->epochs.size(), 2u);
  EXPECT_TRUE(std::isnan(run->epochs[0].train_loss));
  EXPECT_EQ(run->epochs[1].test_accuracy, 0.9);
  EXPECT_FALSE(run->waits.has_value() || run->staleness.has_value());
  EXPECT_EQ(run->epoch_samples, 0) << "the log does not say";
}

TEST_F(RunRecordTest, EvaluationsAreReadBySplitAndThoseAfterTheCheckpointAreReplaced) {
  const auto evaluation = [](const std::string& split, const std::string& position, const std::string& loss) {
    return R"({"kind":"evaluation","split":")" + split + R"(","epoch":)" + position + R"(,"loss":)" + loss +
           R"(,"accuracy":0.5,"train_s":4})" + "\n";
  };
  const std::string resumed = R"({"kind":"started","epoch_samples":100,"epoch_position":0.5})"
                              "\n";
  const auto run = read(kStarted + evaluation("validation", "0.5", "3") + evaluation("validation", "0.75", "2") +
                        evaluation("test", "0.75", "2") + resumed + evaluation("validation", "0.8", "1") +
                        evaluation("test", "0.9", "null"));
  ASSERT_TRUE(run.has_value()) << run.error().message;
  ASSERT_EQ(run->validation.size(), 2U);
  EXPECT_EQ(run->validation[0].epoch, 0.5);
  EXPECT_EQ(run->validation[0].loss, 3);
  EXPECT_EQ(run->validation[1].epoch, 0.8);
  EXPECT_EQ(run->validation[1].accuracy, 0.5);
  EXPECT_EQ(run->validation[1].seconds, 4);
  ASSERT_EQ(run->test.size(), 1U);
  EXPECT_TRUE(std::isnan(run->test[0].loss));
}

TEST_F(RunRecordTest, ResumedEpochsReplaceThoseAfterTheCheckpoint) {
  // Epoch 2 is trained twice. The second process counts its seconds from zero …
  const auto anew = read(kStarted + epoch(1, 2) + epoch(2, 4) + kStarted + epoch(2, 3) + epoch(3, 5));
  EXPECT_THAT(seconds(*anew), ElementsAre(2, 5, 7));
  // … or continues those of the checkpoint.
  const auto onward = read(kStarted + epoch(1, 2) + epoch(2, 4) + kStarted + epoch(3, 6));
  EXPECT_THAT(seconds(*onward), ElementsAre(2, 4, 6));
}

TEST_F(RunRecordTest, ReadsTrainingWithinEpochs) {
  const std::string started = R"({"kind":"started","epoch_samples":400,"epoch_position":0})"
                              "\n";
  // Two workers; the epoch's training time is 4 s, of which the busiest worker counted 2 s.
  const auto run = read(started + worker(0, 100, 1, 2.0) + worker(1, 100, 0.5, 1.0) + worker(0, 300, 2, "null") +
                        epoch(1, 4) + worker(1, 500, 3, 0.5));
  EXPECT_EQ(run->epoch_samples, 400);
  ASSERT_EQ(run->training.size(), 4u);
  EXPECT_EQ(run->training[0].epoch, 0.25);
  EXPECT_EQ(run->training[0].seconds, 2);
  EXPECT_EQ(run->training[0].loss, 2.0);
  EXPECT_EQ(run->training[1].epoch, 0.5);
  EXPECT_EQ(run->training[2].seconds, 4);
  EXPECT_TRUE(std::isnan(run->training[2].loss));
  EXPECT_EQ(run->training[3].epoch, 2.0);
  EXPECT_EQ(run->training[3].seconds, 5) << "after the last evaluation a worker's own time counts";
}

TEST_F(RunRecordTest, AnEpochThatRepeatsSamplesEndsAtItsNumber) {
  const std::string started = R"({"kind":"started","epoch_samples":100,"epoch_position":0})"
                              "\n";
  const auto run =
      read(started + worker(0, 60, 1, 2.0) + worker(0, 110, 2, 1.0) + epoch(1, 2) + worker(0, 160, 3, 0.5));
  ASSERT_EQ(run->training.size(), 3u);
  EXPECT_NEAR(run->training[0].epoch, 0.6, 1e-12);
  EXPECT_EQ(run->training[1].epoch, 1);
  EXPECT_NEAR(run->training[2].epoch, 1.5, 1e-12);
}

TEST_F(RunRecordTest, AResumeReplacesTrainingAfterItsCheckpoint) {
  const auto started = [](const std::string& position) {
    return R"({"kind":"started","epoch_samples":100,"epoch_position":)" + position + "}\n";
  };
  const auto run = read(started("0") + worker(0, 50, 1, 2.0) + worker(0, 100, 2, 1.5) + worker(0, 150, 3, 9.0) +
                        started("1") + worker(0, 50, 1, 1.0));
  ASSERT_EQ(run->training.size(), 3u);
  EXPECT_EQ(run->training[2].epoch, 1.5);
  EXPECT_EQ(run->training[2].loss, 1.0);
  EXPECT_EQ(run->training[2].seconds, 3) << "2 s before, and one of its own";
}

// The checkpoint is that of epoch 2, and the repeated epoch 3 is a little faster.
TEST_F(RunRecordTest, AResumeThatRepeatsAnEpochFasterKeepsTheRunsTime) {
  const auto started = [](const std::string& more) { return R"({"kind":"started","epoch_position":)" + more + "}\n"; };
  const auto run =
      read(started("0") + epoch(1, 2) + epoch(2, 4) + epoch(3, 6) + started("2.0") + epoch(3, 5.5) + epoch(4, 7));
  EXPECT_THAT(seconds(*run), ElementsAre(2, 4, 5.5, 7));
}

// The interrupt came within epoch 2, whose first 50 samples took 3 s as their worker counts.
TEST_F(RunRecordTest, AResumeBeginsAtTheTrainingTimeThatItTells) {
  const std::string begun = R"({"kind":"started","epoch_samples":100,"epoch_position":0})"
                            "\n";
  const std::string resumed =
      R"({"kind":"started","epoch_samples":100,"epoch_position":1.5,"steps":5,"samples":150,"train_s":4.5})"
      "\n";
  const auto run = read(begun + worker(0, 100, 2, 1.0) + epoch(1, 2) + worker(0, 150, 5, 1.0) + resumed +
                        worker(0, 50, 1, 0.5) + epoch(2, 5.5));
  ASSERT_EQ(run->training.size(), 3u);
  EXPECT_EQ(run->training[1].seconds, 4.5);
  EXPECT_EQ(run->training[2].seconds, 5.5);
}

std::string ledger(int epoch, int done, int given_up = 0) {
  return R"({"kind":"ledger","epoch":)" + std::to_string(epoch) + R"(,"size":100,"omitted":0,"done":)" +
         std::to_string(done) + R"(,"given_up":)" + std::to_string(given_up) + "}\n";
}

// A third of the samples is given up, and only the ledger tells.
TEST_F(RunRecordTest, StepsThatArePassedOverCountAsDone) {
  const std::string started = R"({"kind":"started","epochs":2,"epoch_samples":100,"epoch_position":0})"
                              "\n";
  const auto run = read(started + worker(0, 20, 1, 2.0) + worker(0, 40, 2, 1.0) + ledger(0, 40, 20) + epoch(1, 3) +
                        worker(0, 120, 4, 0.5) + ledger(1, 54, 26) + worker(0, 140, 5, 0.4));
  ASSERT_EQ(run->training.size(), 4u);
  EXPECT_NEAR(run->training[0].epoch, 0.3, 1e-12);
  EXPECT_NEAR(run->training[1].epoch, 0.6, 1e-12);
  EXPECT_NEAR(run->training[2].epoch, 1.8, 1e-12);
  EXPECT_EQ(run->training[3].epoch, 2) << "no run has more than its epochs";
}

// 128 samples are computed for each epoch of 100, and each line of an epoch tells how many there are.
TEST_F(RunRecordTest, BatchesThatWrapAroundDoNotGoBeyondTheRun) {
  const auto line = [](int number, int samples) {
    auto text = epoch(number, number);
    return text.replace(text.find("\"train_s\""), 0, R"("samples":)" + std::to_string(samples) + ",");
  };
  const std::string started =
      R"({"kind":"started","epochs":20,"epoch_samples":100,"epoch_position":10,"steps":20,"samples":1280,"train_s":10})"
      "\n";
  const auto run = read(started + worker(0, 64, 1, 2.0) + worker(0, 128, 2, 1.0) + line(11, 1408) +
                        worker(0, 1216, 9, 0.5) + line(20, 2560) + worker(0, 1280, 10, 0.5));
  std::vector<double> epochs;
  for (const auto& point : run->training) epochs.push_back(point.epoch);
  EXPECT_THAT(epochs, ElementsAre(10.5, 11, testing::DoubleNear(19.5, 1e-12), 20));
}

TEST_F(RunRecordTest, ReadsHowTheRunEnded) {
  const std::string done = R"({"kind":"ended","error":null})"
                           "\n";
  const std::string lost = R"({"kind":"ended","error":{"code":"peer_lost","message":"m"}})"
                           "\n";
  EXPECT_EQ(read(kStarted + done)->outcome, "done");
  EXPECT_EQ(read(kStarted + lost)->outcome, "peer_lost");
  EXPECT_EQ(read(kStarted + lost + kStarted)->outcome, "") << "it trains again";
}

TEST_F(RunRecordTest, DamageIsNoRecord) {
  for (const std::string line : {"garbage\n", "\n", "[1]\n", "{\"kind\":\"ep\n", "{\"kind\":3}\n"}) {
    const auto run = read(kStarted + line + epoch(1, 2));
    ASSERT_FALSE(run.has_value()) << line;
    EXPECT_EQ(run.error().code, core::Errc::corrupt) << line;
    EXPECT_THAT(run.error().message, testing::HasSubstr("metrics.jsonl, line 2")) << line;
  }
  EXPECT_FALSE(read(kStarted + "garbage\n").has_value()) << "it is whole";
  for (const auto* summary : {"", "{", "[]", R"({"strategy":3})", R"({"staleness":{"edges":["a"]}})"}) {
    const auto run = read(kStarted, summary);
    ASSERT_FALSE(run.has_value()) << summary;
    EXPECT_EQ(run.error().code, core::Errc::corrupt) << summary;
    EXPECT_THAT(run.error().message, testing::HasSubstr("summary.json")) << summary;
  }
  std::filesystem::remove(folder_.file("20260102-030405-my-run/summary.json"));
  EXPECT_TRUE(read_run(folder_.file("20260102-030405-my-run")).has_value()) << "it still trains";
}

TEST(AverageTest, HasTheEpochsThatAllRunsHave) {
  RunRecord one, two;
  one.epoch_samples = two.epoch_samples = 50;
  one.epochs = {{1, 2, 0.5, 0.4, 0.8, 0.9}, {2, 4, 0.3, 0.2, 0.9, 0.95}};
  two.epochs = {{1, 4, 0.7, 0.6, 0.6, 0.7}};
  const auto mean = average({one, two}, "both");
  EXPECT_EQ(mean.label, "both");
  EXPECT_EQ(mean.epoch_samples, 50);
  ASSERT_EQ(mean.epochs.size(), 1u);
  EXPECT_EQ(mean.epochs[0].seconds, 3);
  EXPECT_NEAR(mean.epochs[0].test_accuracy, 0.8, 1e-12);
  EXPECT_NEAR(mean.deviations[0].test_accuracy, std::sqrt(2) / 10, 1e-12);
  EXPECT_TRUE(average({one}, "one").deviations.empty()) << "one run deviates from nothing";
}

TEST(AverageTest, TrainingOfFastAndSlowRunsIsOneCurve) {
  RunRecord fast, slow;
  fast.training = {{0.5, 1, 10, 2.0, 0.2}, {1, 2, 10, 1.0, 0.4}};
  slow.training = {{0.5, 3, 30, 1.0, 0.6}, {1, 6, 10, 0.5, 0.8}};
  const auto training = average({fast, slow}, "both").training;
  ASSERT_EQ(training.size(), 2u);
  EXPECT_EQ(training[0].epoch, 0.5);
  EXPECT_EQ(training[0].seconds, 2) << "half of the mean length, 4 s";
  EXPECT_EQ(training[0].loss, 1.25) << "(10 · 2 + 30 · 1) / 40";
  EXPECT_EQ(training[1].seconds, 4);
  EXPECT_EQ(training[1].loss, 0.75);
}

TEST(MeanTest, DeviationIsThatOfASample) {
  EXPECT_EQ(mean_of({1, 3}).mean, 2);
  EXPECT_NEAR(mean_of({1, 3}).deviation, std::sqrt(2), 1e-12);
  EXPECT_EQ(mean_of({5}).deviation, 0);
  EXPECT_TRUE(std::isnan(mean_of({}).mean));
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

}  // namespace
}  // namespace troupe::plot
