// Whole runs from folders and tar shards of pictures: the same bits with any number of decoders, after a resume in mid-epoch, in a replay and
// in a simulation; unreadable pictures are counted, and bad folders are one line.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// 240 training and 40 test pictures of 24 x 20 in 4 classes, as a folder per class and as tar shards of 50.
class PicturesRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    pictures_ = new TemporaryDirectory;
    for (const auto* form : {"folder", "shards"}) {
      const auto converted =
          troupe({"data", "convert", "--to", form, "--per-file", "50", "--output", pictures_->file(form), "--set",
                  "data.name=synthetic", "--set", "data.shape=[3,20,24]", "--set", "data.classes=4", "--set",
                  "data.train_samples=240", "--set", "data.test_samples=40"});
      ASSERT_EQ(converted.code, 0) << converted.err;
    }
  }
  static void TearDownTestSuite() { delete std::exchange(pictures_, nullptr); }

  /// Arguments of a command about `config_`, with each of `settings`.
  std::vector<std::string> about(std::vector<std::string> command, const std::string& form,
                                 const std::vector<std::string>& settings = {}) const {
    command.insert(command.end(), {"--set", "data.name=" + form, "--set", "data.path=" + pictures_->file(form)});
    for (const auto& setting : settings) command.insert(command.end(), {"--set", setting});
    return command;
  }
  Outcome attempt(const std::string& form, const std::vector<std::string>& settings = {}) const {
    return troupe(about({"train", config_, "--json", "--quiet"}, form, settings));
  }
  json train(const std::string& form, const std::vector<std::string>& settings = {}) const {
    const auto outcome = attempt(form, settings);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  bool no_run() const { return !std::filesystem::exists(folder_.file("runs")); }

  static inline TemporaryDirectory* pictures_ = nullptr;
  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", "[run]\nepochs = 3\ndir = \"" + folder_.file("runs") + R"("
[model]
name = "mlp"
widths = [24]
[data]
name = "folder"
classes = 4
crop = 16
random_resized_crop = true
mirror = true
brightness = 0.2
normalise = true
window = 60
batch = 10
[train]
lr = 0.05
[strategy]
name = "bsp"
[cluster]
workers = 2
)");
};

TEST_F(PicturesRun, LearnsFromAFolderAndFromShards) {
  for (const auto* form : {"folder", "shards"}) {
    const auto summary = train(form, {"strategy.name=easgd", "run.epochs=5"});
    EXPECT_GT(summary["test"]["accuracy"], 0.6) << form;
    EXPECT_EQ(summary["samples"], 5 * 240);
    EXPECT_EQ(summary["per_worker"][0]["replaced"], 0);
  }
}

TEST_F(PicturesRun, DecodersAndPrefetchChangeNoBit) {
  for (const auto* form : {"folder", "shards"}) {
    const auto one = train(form), four = train(form, {"data.decode_threads=4", "data.prefetch=7"});
    EXPECT_EQ(one["center_hash"], four["center_hash"]) << form;
    EXPECT_EQ(one["test"], four["test"]) << form;
  }
  EXPECT_NE(train("folder")["center_hash"], train("folder", {"run.seed=2"})["center_hash"]);
}

TEST_F(PicturesRun, ARunResumedInMidEpochHasTheBitsOfAWholeOne) {
  for (const auto* form : {"folder", "shards"}) {
    const auto whole = train(form, {"run.epochs=5"});
    // 12 steps of 40 ms an epoch: the interrupt comes in the second or third, and seldom at its end: then again.
    std::string run;
    int steps = 0;
    for (int attempt = 0; attempt < 5 && steps % 12 == 0; ++attempt) {
      std::filesystem::remove_all(run);
      const auto cut = troupe_interrupted(
          about({"train", config_, "--plain"}, form, {"run.epochs=5", "run.name=cut", "cluster.synthetic_step_ms=40"}),
          "epoch 1/");
      ASSERT_EQ(cut.code, 130) << cut.err;
      for (const auto& entry : std::filesystem::directory_iterator(folder_.file("runs")))
        if (entry.path().filename().string().find("cut") != std::string::npos) run = entry.path().string();
      steps = json::parse(contents(run + "/summary.json"))["steps"].get<int>();
    }
    ASSERT_NE(steps % 12, 0);
    const auto resumed =
        troupe({"train", "--resume", run, "--json", "--quiet", "--set", "cluster.synthetic_step_ms=0"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(json::parse(resumed.out)["center_hash"], whole["center_hash"]) << form;
    std::filesystem::remove_all(run);
  }
}

TEST_F(PicturesRun, ReplaysAndSimulatesToTheSameBits) {
  const auto summary = train("shards");
  const auto replayed = troupe({"replay", summary["run"], "--json"});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(json::parse(replayed.out)["center_hash"], summary["center_hash"]);
  const auto cluster = folder_.write("cluster.toml", "[hosts.node]\ncount = 2\nstep_ms = 10\n");
  const auto simulated = troupe(about({"simulate", config_, "--gradients", "--cluster", cluster, "--json"}, "shards"));
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_EQ(json::parse(simulated.out)["center_hash"], summary["center_hash"]);
}

TEST_F(PicturesRun, AnAsynchronousRunReplays) {
  const auto summary = train("folder", {"strategy.name=easgd", "data.decode_threads=2"});
  const auto replayed = troupe({"replay", summary["run"], "--json"});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(json::parse(replayed.out)["complete"], true);
}

TEST_F(PicturesRun, IsCheckedAndForecast) {
  for (const auto* form : {"folder", "shards"}) {
    const auto checked = troupe(about({"check", config_, "--data"}, form));
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr("input 3x16x16, 4 outputs"));
    EXPECT_EQ(troupe(about({"check", config_}, form)).code, 0);
    const auto dry = troupe(about({"train", config_, "--dry-run", "--json"}, form));
    ASSERT_EQ(dry.code, 0) << dry.err;
    const auto fitting = troupe(about(
        {"simulate", config_, "--cluster", folder_.write("cluster.toml", "[hosts.node]\ncount = 2\nstep_ms = 10\n")},
        form));
    EXPECT_EQ(fitting.code, 0) << fitting.err;
  }
}

TEST_F(PicturesRun, UnreadablePicturesAreCountedAndOneTooManyEndsTheRun) {
  const TemporaryDirectory photos;
  std::filesystem::copy(pictures_->file("folder"), photos.file("p"), std::filesystem::copy_options::recursive);
  std::vector<std::string> broken;
  for (const auto& entry : std::filesystem::directory_iterator(photos.file("p") + "/train/2"))
    broken.push_back(entry.path().string());
  std::ofstream(broken[0], std::ios::trunc) << "GIF89a";
  std::filesystem::resize_file(broken[1], 200);
  const std::vector<std::string> about_them{"data.path=" + photos.file("p"), "data.max_bad=2"};
  const auto summary = train("folder", about_them);
  std::uint64_t replaced = 0;
  for (const auto& worker : summary["per_worker"]) replaced += worker["replaced"].get<std::uint64_t>();
  EXPECT_EQ(replaced, 2u * 3);  // in each of three epochs
  const auto replayed = troupe({"replay", summary["run"], "--json"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;

  std::ofstream(broken[2], std::ios::trunc) << "nothing";
  const auto failed = attempt("folder", about_them);
  EXPECT_EQ(failed.code, 65);
  EXPECT_THAT(failed.err, HasSubstr("(unreadable samples so far: 3; data.max_bad = 2)"));
}

TEST_F(PicturesRun, APictureThatCannotBeOpenedIsNoBadSample) {
  const TemporaryDirectory photos;
  std::filesystem::copy(pictures_->file("folder"), photos.file("p"), std::filesystem::copy_options::recursive);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(photos.file("p") + "/train/0"))
    names.push_back(entry.path().string());
  std::ranges::sort(names);
  const auto& second = names[1];  // no sample of the data set's fingerprint: training reads it first
  std::filesystem::remove(second);
  ASSERT_EQ(::mknod(second.c_str(), S_IFSOCK | 0600, 0), 0);  // not even root opens a socket
  for (const auto* threads : {"1", "3"}) {
    const auto failed = attempt(
        "folder", {"data.path=" + photos.file("p"), "data.max_bad=9", std::string("data.decode_threads=") + threads});
    EXPECT_EQ(failed.code, 74) << failed.err;
    EXPECT_THAT(failed.err, HasSubstr("cannot open " + second));
    EXPECT_FALSE(no_run());
  }
}

TEST_F(PicturesRun, UnreadableTestPicturesAreCountedToo) {
  const TemporaryDirectory photos;
  std::filesystem::copy(pictures_->file("folder"), photos.file("p"), std::filesystem::copy_options::recursive);
  const auto broken = std::filesystem::directory_iterator(photos.file("p") + "/test/2")->path();
  std::filesystem::resize_file(broken, 0);
  const auto summary = train("folder", {"data.path=" + photos.file("p"), "data.max_bad=1"});
  const std::string run = summary["run"];
  const std::string warning = "1 sample of the test split could not be read: others stand in their place";
  const auto metrics = contents(run + "/metrics.jsonl");
  const auto told = metrics.find(warning);
  ASSERT_NE(told, std::string::npos) << metrics;
  EXPECT_EQ(metrics.find(warning, told + 1), std::string::npos) << "again";
  const auto evaluated = troupe({"eval", run, "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(json::parse(evaluated.out)["replaced"], 1);
  EXPECT_THAT(troupe({"eval", run}).out, HasSubstr("1 sample could not be read: others stood in their place"));
}

TEST_F(PicturesRun, BadFoldersAndShardsAreOneLineAndNoRun) {
  const TemporaryDirectory bad;
  std::filesystem::create_directories(bad.file("empty/train"));
  std::filesystem::create_directories(bad.file("classless/train/cat"));
  std::filesystem::create_directories(bad.file("compressed"));
  std::ofstream(bad.file("compressed/train.tar")) << "\x1f\x8b\b and so on";
  struct Case {
    std::string form, folder, says;
  };
  for (const auto& wrong :
       {Case{"folder", "none", "no folder train in"}, Case{"folder", "empty", "no folder of a class is there"},
        Case{"folder", "classless", "cat: a class without pictures"}, Case{"shards", "empty", "no file train*.tar in"},
        Case{"shards", "compressed", "train.tar: record 0: not a tar file"}}) {
    const auto outcome = attempt(wrong.form, {"data.path=" + bad.file(wrong.folder)});
    EXPECT_EQ(outcome.code, 65) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.says));
    EXPECT_TRUE(no_run());
  }
  std::filesystem::copy(pictures_->file("shards"), bad.file("fewer"), std::filesystem::copy_options::recursive);
  std::ofstream(bad.file("fewer/classes.txt")) << "ant\nbee\ncat\n";
  const auto other = attempt("shards", {"data.path=" + bad.file("fewer")});
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.err, HasSubstr("label 3 is not in 0 ... 2"));
}

}  // namespace
}  // namespace troupe::apps
