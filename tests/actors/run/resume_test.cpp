// Interrupting and going on: BSP bit for bit, EASGD from the centre; what a broken checkpoint or a full disk leads to.
#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

/// A stop that is asked for before the run begins: it ends at the first quiet moment, somewhere early in the first epoch.
std::stop_token already_stopped() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

class BspModes : public testing::TestWithParam<const char*> {};

TEST_P(BspModes, ResumedRunReachesTheBitsOfTheUninterruptedOne) {
  const std::vector<std::string> options{std::string("strategy.combine=") + GetParam(), "train.lr=0.05",
                                         "run.epochs=4"};
  SmallRun whole(options);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;

  // Stopped by the number of epochs (at a boundary), then trained to the end. The schedule is constant, so it does not see it.
  auto first_part = options;
  first_part.back() = "run.epochs=2";
  SmallRun parts(first_part);
  ASSERT_FALSE(parts.train().failed);
  const auto end = parts.resume({"run.epochs=4"});
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(end.summary.steps, expected.summary.steps);
  EXPECT_EQ(end.summary.samples, expected.summary.samples);
  EXPECT_EQ(parts.tensors(), whole.tensors());
}

TEST_P(BspModes, InterruptedInMidEpochItStillDoes) {
  const std::vector<std::string> options{std::string("strategy.combine=") + GetParam(), "train.lr=0.05", "run.epochs=2",
                                         "train.lr_policy=polynomial"};
  SmallRun whole(options);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;

  SmallRun parts(options);
  auto end = parts.train(already_stopped());
  EXPECT_TRUE(end.failed);
  EXPECT_EQ(end.error.code, core::Errc::interrupted);
  for (int i = 0; i < 3; ++i) {
    std::stop_source source;
    std::jthread interrupter([&] { source.request_stop(); });  // at some moment of start-up or training: all must do
    end = parts.resume({}, source.get_token());
    if (!end.failed) break;
    EXPECT_EQ(end.error.code, core::Errc::interrupted) << end.error.message;
  }
  if (end.failed) end = parts.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(end.summary.samples, expected.summary.samples);
}

// Adam corrects its moments by the number of its step, which a checkpoint keeps beside them.
TEST(Resume, AdamGoesOnAtItsNumberWhateverSessionsCameBefore) {
  const std::vector<std::string> options{"train.optimizer=adam", "train.lr=0.003", "run.epochs=4"};
  SmallRun whole(options);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;
  SmallRun parts(options);
  auto end = parts.train(already_stopped());
  EXPECT_EQ(end.error.code, core::Errc::interrupted) << end.error.message;
  end = parts.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);

  // Moments that began in the second session count from there in the third.
  SmallRun other({"train.lr=0.003", "run.epochs=1"});
  ASSERT_FALSE(other.train().failed);
  std::filesystem::copy(other.run_directory(), other.directory() / "fork", std::filesystem::copy_options::recursive);
  const std::vector<std::string> adam{"train.optimizer=adam", "run.epochs=3"};
  const auto at_once = other.resume(adam);
  ASSERT_FALSE(at_once.failed) << at_once.error.message;
  std::filesystem::remove_all(other.run_directory());
  std::filesystem::rename(other.directory() / "fork", other.directory() / "runs" / "fork");
  ASSERT_FALSE(other.resume({"train.optimizer=adam", "run.epochs=2"}).failed);
  const auto in_two = other.resume(adam);
  ASSERT_FALSE(in_two.failed) << in_two.error.message;
  EXPECT_EQ(in_two.summary.center_hash, at_once.summary.center_hash);
}

// The model of a segment that begins before the session has looked at it: nobody but the workers has it.
TEST(Resume, InMidEpochWithSegmentsThatAreSoonFull) {
  for (const char* strategy : {"bsp", "gossip"}) {
    SmallRun run({std::string("strategy.name=") + strategy, "run.epochs=20", "model.widths=[4]"});
    ASSERT_EQ(run.train(already_stopped()).error.code, core::Errc::interrupted);
    const auto end = run.resume({"run.journal=60 KB", "run.checkpoint_every=never"});
    EXPECT_FALSE(end.failed) << strategy << ": " << end.error.message;
    std::string newest;  // the first session's, this one's first, and at least one more
    for (const auto& entry : std::filesystem::directory_iterator(run.run_directory()))
      if (entry.path().extension() == ".bin") newest = std::max(newest, entry.path().filename().string());
    EXPECT_GE(newest, "journal-0003.bin") << strategy;
  }
}

INSTANTIATE_TEST_SUITE_P(Combine, BspModes, testing::Values("gradients", "updates", "weights"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Resume, CheckpointsInMidEpochContinueBitForBit) {
  // Checkpoints every 14 steps over both workers, all kept: at the beginning, after 14 steps, perhaps more, and at the end.
  SmallRun whole({"run.epochs=1"});
  const auto expected = whole.train();
  SmallRun run({"run.epochs=1", "run.checkpoint_every=\"14 steps\"", "run.keep_checkpoints=20"});
  const auto first = run.train();
  ASSERT_FALSE(first.failed) << first.error.message;
  EXPECT_EQ(first.summary.center_hash, expected.summary.center_hash);  // pausing changes nothing
  // Take away the newest generations: what is left is a checkpoint from the middle.
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(run.run_directory() / "checkpoints")) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 3U);  // of those that fall due while one is written only the last is taken
  for (std::size_t i = 2; i < files.size(); ++i) std::filesystem::remove(files[i]);
  const auto end = run.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(end.summary.samples, expected.summary.samples);
}

TEST(Resume, EasgdWorkersJoinAnewWithTheCentre) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=2", "run.epochs=2"});
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"run.epochs=3", "cluster.workers=3"});  // another number of workers is fine
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.samples, 3 * 1200U);
  EXPECT_EQ(end.summary.epochs, 3U);
  EXPECT_TRUE(std::filesystem::exists(run.run_directory() / "journal-0002.bin"));  // a new segment
}

/// The `epoch` lines of metrics.jsonl.
std::vector<nlohmann::json> epochs_of(const SmallRun& run) {
  std::ifstream metrics(run.run_directory() / "metrics.jsonl");
  std::vector<nlohmann::json> epochs;
  for (std::string text; std::getline(metrics, text);) {
    auto line = nlohmann::json::parse(text);
    if (line["kind"] == "epoch") epochs.push_back(std::move(line));
  }
  return epochs;
}

nlohmann::json summary_of(const SmallRun& run) {
  std::ifstream file(run.run_directory() / "summary.json");
  return nlohmann::json::parse(file);
}

TEST(Resume, AnEpochIsReportedOnce) {
  for (const char* strategy : {"bsp", "easgd"}) {
    SmallRun run({std::string("strategy.name=") + strategy, "run.epochs=2"});
    ASSERT_FALSE(run.train().failed);
    const auto end = run.resume({"run.epochs=3"});
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto epochs = epochs_of(run);
    ASSERT_EQ(epochs.size(), 3U) << strategy;
    for (std::size_t k = 0; k < epochs.size(); ++k) {
      EXPECT_EQ(epochs[k]["epoch"], k + 1);
      EXPECT_GT(epochs[k]["train"]["loss"].get<double>(), 0) << strategy;
      EXPECT_GT(epochs[k]["train"]["images_per_s"].get<double>(), 0) << strategy;
    }
  }
}

TEST(Resume, AnEpochThatWasInterruptedIsReportedAsAWhole) {
  SmallRun run({"run.epochs=1", "run.checkpoint_every=\"14 steps\"", "run.keep_checkpoints=20"});
  ASSERT_FALSE(run.train().failed);
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(run.run_directory() / "checkpoints"))
    if (entry.path().extension() == ".safetensors") files.insert(entry.path());
  ASSERT_GE(files.size(), 3U);  // step 0, one in the middle, the end; how many between depends on the disk
  std::for_each(std::next(files.begin(), 2), files.end(), [](const auto& file) { std::filesystem::remove(file); });
  ASSERT_FALSE(run.resume().failed);
  const auto epochs = epochs_of(run);
  ASSERT_EQ(epochs.size(), 2U);
  const auto at_once = epochs[0]["train"], in_parts = epochs[1]["train"];
  EXPECT_NEAR(in_parts["loss"].get<double>(), at_once["loss"].get<double>(), 1e-9);
  EXPECT_EQ(in_parts["accuracy"], at_once["accuracy"]);
}

TEST(Resume, WhatHasReachedItsTargetKeepsItsSummary) {
  for (const char* strategy : {"bsp", "easgd"}) {
    SmallRun run({std::string("strategy.name=") + strategy, "run.epochs=9", "run.target_accuracy=0.01"});
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    ASSERT_EQ(end.summary.epochs, 1U);
    auto before = summary_of(run);
    const auto again = run.resume();
    ASSERT_FALSE(again.failed) << again.error.message;
    auto after = summary_of(run);
    EXPECT_GT(before["train"]["loss"].get<double>(), 0);
    EXPECT_GT(before["time"]["compute_s"].get<double>(), 0);
    for (auto* summary : {&before, &after}) summary->erase("wall_s");
    EXPECT_NEAR(before["train"]["images_per_s"].get<double>(), after["train"]["images_per_s"].get<double>(),
                1e-6 * before["train"]["images_per_s"].get<double>());
    for (auto* summary : {&before, &after}) (*summary)["train"].erase("images_per_s");
    EXPECT_EQ(before, after) << strategy;
    EXPECT_EQ(epochs_of(run).size(), 1U) << strategy;
  }
}

/// The model is an average of the centre: workers and servers go on from the centre itself.
std::vector<std::string> averaging(const std::string& server_optimizer) {
  return {"strategy.name=mixed", "strategy.ema=0.9",  "strategy.server_optimizer=" + server_optimizer,
          "cluster.workers=1",   "cluster.servers=2", "train.optimizer=sgd",
          "train.lr=0.01"};
}

TEST(Resume, TheCentreOfAnAverageGoesOnWhereItWas) {
  for (const std::string server_optimizer : {"none", "adam"}) {
    SCOPED_TRACE(server_optimizer);
    auto options = averaging(server_optimizer);
    options.emplace_back("run.epochs=3");
    SmallRun whole(options);
    const auto expected = whole.train();
    ASSERT_FALSE(expected.failed) << expected.error.message;
    options.back() = "run.epochs=1";
    SmallRun parts(options);
    ASSERT_FALSE(parts.train().failed);
    const auto end = parts.resume({"run.epochs=3"});
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
    const auto tensors = parts.tensors();
    EXPECT_EQ(tensors, whole.tensors());
    EXPECT_NE(tensors.at("center.fc1.weight"), tensors.at("fc1.weight")) << "an average lags behind";
  }
}

TEST(Resume, ACheckpointWithoutTheCentreBeginsAtTheAverage) {
  SmallRun run(averaging("none"));
  ASSERT_FALSE(run.train().failed);
  {
    auto store = nn::CheckpointStore::open((run.run_directory() / "checkpoints").string());
    auto newest = store->load_newest();
    ASSERT_TRUE(newest) << newest.error().message;
    auto checkpoint = experiment::load(newest->checkpoint.file, experiment::draw(*run.settings(), true)->graph);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    ASSERT_EQ(checkpoint->vectors.erase(experiment::kCenterPrefix), 1U);  // as version 0.1 wrote it
    ASSERT_TRUE(experiment::save(*store, *checkpoint));
  }
  const auto end = run.resume({"run.epochs=2"});
  ASSERT_FALSE(end.failed) << end.error.message;
  std::ifstream metrics(run.run_directory() / "metrics.jsonl");
  const std::string text((std::istreambuf_iterator<char>(metrics)), {});
  EXPECT_NE(text.find("has the average and not the centre"), std::string::npos);
}

TEST(Resume, NothingLeftToDoIsSaid) {
  SmallRun run;
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume();
  ASSERT_TRUE(end.failed);
  EXPECT_EQ(end.error.code, core::Errc::config);
  EXPECT_NE(end.error.message.find("run.epochs"), std::string::npos) << end.error.message;
}

/// A file's lines.
std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// As if the process had been killed after its last checkpoint: without a summary, or with an earlier session's, and the metrics end
/// before their last line.
void forget_the_end(const SmallRun& run, const std::string& summary) {
  const auto metrics = lines_of(run.run_directory() / "metrics.jsonl");
  ASSERT_NE(metrics.back().find("\"kind\":\"ended\""), std::string::npos);
  {
    std::ofstream file(run.run_directory() / "metrics.jsonl");
    for (std::size_t i = 0; i + 1 < metrics.size(); ++i) file << metrics[i] << "\n";
    file << "{\"kind\":\"en";  // what was under way
  }
  std::filesystem::remove(run.run_directory() / "summary.json");
  if (!summary.empty()) std::ofstream(run.run_directory() / "summary.json") << summary << "\n";
}

TEST(Resume, ARunKilledBetweenItsLastCheckpointAndItsSummaryEndsAsItWouldHave) {
  for (const char* strategy : {"bsp", "easgd", "gossip"}) {
    SCOPED_TRACE(strategy);
    SmallRun run({std::string("strategy.name=") + strategy, "run.epochs=2"});
    ASSERT_FALSE(run.train().failed);
    const auto expected = lines_of(run.run_directory() / "summary.json");
    ASSERT_EQ(expected.size(), 1U);
    const auto earlier = nlohmann::json::parse(expected[0]);
    auto of_an_earlier_session = earlier;
    of_an_earlier_session["steps"] = 3;
    for (const auto& left : {std::string(), of_an_earlier_session.dump()}) {
      forget_the_end(run, left);
      const auto end = run.resume();
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto written = lines_of(run.run_directory() / "summary.json");
      ASSERT_EQ(written.size(), 1U);
      auto now = nlohmann::json::parse(written[0]);
      // The last moments are those between the checkpoint and the end.
      EXPECT_LE(now["wall_s"], earlier["wall_s"]);
      now["wall_s"] = earlier["wall_s"];
      EXPECT_EQ(now, earlier) << "every count, time, loss and hash";
      EXPECT_EQ(to_json(end.summary), written[0]);
      const auto metrics = lines_of(run.run_directory() / "metrics.jsonl");
      EXPECT_NE(metrics.back().find("\"kind\":\"ended\""), std::string::npos) << metrics.back();
      EXPECT_NE(metrics.back().find("\"error\":null"), std::string::npos) << metrics.back();
      for (const auto& line : metrics) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    }
    const auto again = run.resume();
    ASSERT_TRUE(again.failed) << "now nothing is missing";
    EXPECT_EQ(again.error.code, core::Errc::config);
  }
}

TEST(Resume, TheMissingSummaryNeedsNoMetrics) {
  SmallRun run({"run.epochs=2"});
  const auto whole = run.train();
  ASSERT_FALSE(whole.failed);
  std::filesystem::remove(run.run_directory() / "summary.json");
  std::filesystem::remove(run.run_directory() / "metrics.jsonl");
  const auto end = run.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, whole.summary.center_hash);
  EXPECT_EQ(end.summary.steps, whole.summary.steps);
  EXPECT_EQ(end.summary.samples, whole.summary.samples);
  EXPECT_EQ(end.summary.test_accuracy, whole.summary.test_accuracy);
  EXPECT_EQ(end.summary.train_loss, whole.summary.train_loss);
}

TEST(Resume, ARunThatHasComeFurtherThanItIsToldToIsNotComplete) {
  SmallRun run({"run.epochs=2"});
  ASSERT_FALSE(run.train().failed);
  forget_the_end(run, {});
  const auto metrics = lines_of(run.run_directory() / "metrics.jsonl");
  const auto end = run.resume({"run.epochs=1"});
  ASSERT_TRUE(end.failed) << "a summary of one epoch would be of two";
  EXPECT_EQ(end.error.code, core::Errc::config);
  EXPECT_NE(end.error.message.find("epochs are done; add --set run.epochs=N to train longer"), std::string::npos)
      << end.error.message;
  EXPECT_FALSE(std::filesystem::exists(run.run_directory() / "summary.json"));
  EXPECT_EQ(lines_of(run.run_directory() / "metrics.jsonl"), metrics);
  EXPECT_FALSE(run.resume().failed) << "it is as it was";
}

/// Rewrites plan.json: another machine's choice for the first layer.
void plan_of_another_machine(const SmallRun& run) {
  const auto path = run.run_directory() / "plan.json";
  auto plan = nlohmann::json::parse(lines_of(path).at(0));
  ASSERT_FALSE(plan.at("implementations").empty());
  plan["implementations"].begin().value() = "jit:of_another_machine";
  std::ofstream(path) << plan.dump() << "\n";
}

TEST(Resume, APlanOfAnotherMachineIsRefusedAndChosenAnewOnRequest) {
  SmallRun run({"run.epochs=1"});
  ASSERT_FALSE(run.train().failed);
  plan_of_another_machine(run);
  const auto refused = run.resume({"run.epochs=2"});
  ASSERT_TRUE(refused.failed);
  EXPECT_EQ(refused.error.code, core::Errc::config);
  EXPECT_NE(refused.error.message.find("has no jit:of_another_machine for layer"), std::string::npos)
      << refused.error.message;
  EXPECT_NE(refused.error.message.find("resume with --replan to choose anew"), std::string::npos)
      << refused.error.message;

  const auto end = run.resume({"run.epochs=2"}, {}, true);
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.epochs, 2U);
  EXPECT_EQ(lines_of(run.run_directory() / "plan.json").at(0).find("of_another_machine"), std::string::npos);
  bool warned = false;
  for (const auto& line : lines_of(run.run_directory() / "metrics.jsonl"))
    warned = warned || (line.find("\"warning\"") != std::string::npos && line.find("last bits") != std::string::npos);
  EXPECT_TRUE(warned);
  EXPECT_FALSE(run.resume({"run.epochs=3"}).failed) << "the new plan is this machine's";
}

TEST(Resume, APlanThatCannotBeReadIsChosenAnewOnRequest) {
  SmallRun run({"run.epochs=1"});
  ASSERT_FALSE(run.train().failed);
  std::ofstream(run.run_directory() / "plan.json") << "half a pl";
  const auto refused = run.resume({"run.epochs=2"});
  ASSERT_TRUE(refused.failed);
  EXPECT_NE(refused.error.message.find("--replan"), std::string::npos) << refused.error.message;
  EXPECT_FALSE(run.resume({"run.epochs=2"}, {}, true).failed);
}

TEST(Resume, ACorruptCheckpointFallsBackAGeneration) {
  SmallRun run({"run.epochs=2"});
  const auto whole = run.train();
  ASSERT_FALSE(whole.failed);
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(run.run_directory() / "checkpoints")) {
    if (entry.path().extension() == ".safetensors") newest = std::max(newest, entry.path());
  }
  {
    std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file.put('\x55').put('\x2a');
  }
  const auto end = run.resume();  // from the end of the first epoch: trains the second again
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, whole.summary.center_hash);
  std::ifstream metrics(run.run_directory() / "metrics.jsonl");
  const std::string text((std::istreambuf_iterator<char>(metrics)), {});
  EXPECT_NE(text.find("going back one generation"), std::string::npos);
}

TEST(Resume, AnotherModelIsRefused) {
  SmallRun run;
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"model.widths=[25]", "run.epochs=2"});
  ASSERT_TRUE(end.failed);
  EXPECT_EQ(end.error.code, core::Errc::config) << end.error.message;
  EXPECT_NE(end.error.message.find("fc1"), std::string::npos) << end.error.message;
}

}  // namespace
}  // namespace troupe::tests
