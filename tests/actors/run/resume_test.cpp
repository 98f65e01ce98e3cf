// Interrupt and resume: BSP bit for bit, EASGD from the centre; the effects of a broken checkpoint and of a full disk.
#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "experiment/directory/run_records.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

/// A stop requested before the run begins: the run ends at its first quiet moment, early in the first epoch.
std::stop_token already_stopped() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

class BspModes : public ::testing::TestWithParam<const char*> {};

TEST_P(BspModes, ResumedRunReachesTheBitsOfTheUninterruptedOne) {
  const std::vector<std::string> options{std::string("strategy.combine=") + GetParam(), "train.lr=0.05",
                                         "run.epochs=4"};
  SmallRun whole(options);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;

  // The first session ends at its last epoch; the second trains the rest. The schedule is constant: the number of epochs does not matter.
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

TEST_P(BspModes, RunInterruptedInMidEpochReachesTheSameBits) {
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
    std::jthread interrupter([&] { source.request_stop(); });  // at any moment of start-up or training
    end = parts.resume({}, source.get_token());
    if (!end.failed) break;
    EXPECT_EQ(end.error.code, core::Errc::interrupted) << end.error.message;
  }
  if (end.failed) end = parts.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(end.summary.samples, expected.summary.samples);
}

// Adam corrects its moments by its number of steps, which a checkpoint keeps beside them.
TEST(Resume, AdamContinuesItsStepCountOverSessions) {
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

  // Moments that began in the second session count their steps from there in the third.
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

// A segment begins before the session has evaluated the model: only the workers have it.
TEST(Resume, ResumeInMidEpochMayRotateBeforeAnyEvaluation) {
  for (const char* strategy : {"bsp", "gossip"}) {
    std::string newest;
    // A segment begins only once its start state is on disk. Longer steps give a slow disk the time.
    for (const char* step_ms : {"0", "4", "16"}) {
      SmallRun run({std::string("strategy.name=") + strategy, "run.epochs=20", "model.widths=[4]"});
      ASSERT_EQ(run.train(already_stopped()).error.code, core::Errc::interrupted);
      const auto end = run.resume(
          {"run.journal=60 KB", "run.checkpoint_every=never", std::string("cluster.synthetic_step_ms=") + step_ms});
      EXPECT_FALSE(end.failed) << strategy << ": " << end.error.message;
      for (const auto& entry : std::filesystem::directory_iterator(run.run_directory()))
        if (entry.path().extension() == ".bin") newest = std::max(newest, entry.path().filename().string());
      if (end.failed || newest >= "journal-0003.bin") break;
    }
    EXPECT_GE(newest, "journal-0003.bin")
        << strategy << ": the first session's, this one's first, and at least one more";
  }
}

INSTANTIATE_TEST_SUITE_P(Combine, BspModes, ::testing::Values("gradients", "updates", "weights"),
                         [](const auto& info) { return std::string(info.param); });

/// The hashes of each worker's parameters, by step, in the newest segment.
std::map<std::uint32_t, std::vector<std::uint64_t>> hashes_of_parameters(const SmallRun& run) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> hashes;
  for (const auto& record : run.journal()) {
    if (record.kind != static_cast<std::uint16_t>(experiment::RunRecordKind::snapshot)) continue;
    const auto snapshot = experiment::decode_snapshot(record);
    EXPECT_TRUE(snapshot) << snapshot.error().message;
    if (!snapshot->server && snapshot->slot == strategies::kParams) hashes[snapshot->member].push_back(snapshot->hash);
  }
  // The one that is asked for the model has its hash there, too.
  for (auto& [worker, of_worker] : hashes)
    of_worker.erase(std::unique(of_worker.begin(), of_worker.end()), of_worker.end());
  return hashes;
}

/// Each worker has had a velocity and a number of steps of its own.
TEST(Resume, WorkersOfAnotherBspModeStepAlike) {
  for (const char* optimizer : {"momentum", "adam"})
    for (const char* before : {"weights", "updates"})
      for (const char* workers : {"2", "3"}) {
        SCOPED_TRACE(std::string(optimizer) + " " + before + " " + workers);
        SmallRun run({std::string("strategy.combine=") + before, std::string("train.optimizer=") + optimizer,
                      "train.lr=0.01", "run.hash_every=1"});
        ASSERT_FALSE(run.train().failed);
        const auto end =
            run.resume({"strategy.combine=gradients", "run.epochs=2", std::string("cluster.workers=") + workers});
        ASSERT_FALSE(end.failed) << end.error.message;
        const auto hashes = hashes_of_parameters(run);
        ASSERT_EQ(hashes.size(), end.summary.workers);
        ASSERT_GE(hashes.at(0).size(), 20U);
        for (const auto& [worker, of_worker] : hashes) EXPECT_EQ(of_worker, hashes.at(0)) << worker;
      }
}

TEST(Resume, CheckpointsInMidEpochContinueBitForBit) {
  // Checkpoints every 14 steps over both workers, all kept: at the beginning, after 14 steps, perhaps more, and at the end.
  SmallRun whole({"run.epochs=1"});
  const auto expected = whole.train();
  SmallRun run({"run.epochs=1", "run.checkpoint_every=\"14 steps\"", "run.keep_checkpoints=20"});
  const auto first = run.train();
  ASSERT_FALSE(first.failed) << first.error.message;
  EXPECT_EQ(first.summary.center_hash, expected.summary.center_hash);  // pausing changes nothing
  // Remove the newest generations, so that a checkpoint from the middle is the newest.
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(run.run_directory() / "checkpoints")) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 3U);  // of checkpoints that fall due while one is written only the last is taken
  for (std::size_t i = 2; i < files.size(); ++i) std::filesystem::remove(files[i]);
  const auto end = run.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(end.summary.samples, expected.summary.samples);
}

TEST(Resume, EasgdWorkersJoinAnewWithTheCentre) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=2", "run.epochs=2"});
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"run.epochs=3", "cluster.workers=3"});  // another number of workers is allowed
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
  ASSERT_GE(files.size(), 3U);  // step 0, one in the middle, the end; the number between depends on the disk
  std::for_each(std::next(files.begin(), 2), files.end(), [](const auto& file) { std::filesystem::remove(file); });
  ASSERT_FALSE(run.resume().failed);
  const auto epochs = epochs_of(run);
  ASSERT_EQ(epochs.size(), 2U);
  const auto at_once = epochs[0]["train"], in_parts = epochs[1]["train"];
  EXPECT_NEAR(in_parts["loss"].get<double>(), at_once["loss"].get<double>(), 1e-9);
  EXPECT_EQ(in_parts["accuracy"], at_once["accuracy"]);
}

TEST(Resume, ARunThatReachedItsTargetKeepsItsSummary) {
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

/// The model is an average of the centre; workers and servers resume from the centre itself.
std::vector<std::string> averaging(const std::string& server_optimizer) {
  return {"strategy.name=mixed", "strategy.ema=0.9",  "strategy.server_optimizer=" + server_optimizer,
          "cluster.workers=1",   "cluster.servers=2", "train.optimizer=sgd",
          "train.lr=0.01"};
}

/// Every worker has the average; its parameters are beside it in the checkpoint.
TEST(Resume, WorkersParametersBesideAnAverageContinueWhereTheyWere) {
  SmallRun whole({"train.ema=0.9", "run.epochs=3"});
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;
  SmallRun parts({"train.ema=0.9", "run.epochs=1"});
  ASSERT_FALSE(parts.train().failed);
  const auto end = parts.resume({"run.epochs=3"});
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(parts.tensors(), whole.tensors());
  SmallRun plain({"run.epochs=3"});
  ASSERT_FALSE(plain.train().failed);
  const auto tensors = whole.tensors(), without = plain.tensors();
  EXPECT_EQ(tensors.at("center.fc1.weight"), without.at("fc1.weight")) << "an average changes nothing in training";
  EXPECT_NE(tensors.at("fc1.weight"), without.at("fc1.weight"));
}

/// Without the average the run is, to the bit, one that never had an average.
TEST(Resume, WithoutItsAverageARunGoesOnFromWhatWasTrained) {
  for (const char* strategy : {"bsp", "pairs"}) {
    const auto name = std::string("strategy.name=") + strategy;
    SmallRun plain({name, "run.epochs=1"});
    ASSERT_FALSE(plain.train().failed);
    const auto expected = plain.resume({"run.epochs=2"});
    ASSERT_FALSE(expected.failed) << expected.error.message;
    SmallRun averaged({name, "run.epochs=1", "train.ema=0.9999"});
    ASSERT_FALSE(averaged.train().failed);
    const auto end = averaged.resume({"run.epochs=2", "train.ema=0"});
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash) << strategy;
  }
}

TEST(Resume, CentreBesideAnAverageContinuesWhereItWas) {
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

TEST(Resume, WithoutASavedCentreItBeginsAtTheAverage) {
  SmallRun run(averaging("none"));
  ASSERT_FALSE(run.train().failed);
  {
    auto store = nn::CheckpointStore::open((run.run_directory() / "checkpoints").string());
    auto newest = store->load_newest();
    ASSERT_TRUE(newest) << newest.error().message;
    auto checkpoint =
        experiment::load(newest->checkpoint.file, experiment::build_run_spec(*run.settings(), true)->graph);
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

/// The text of metrics.jsonl, where notes stand.
std::string metrics_of(const SmallRun& run) {
  std::ifstream metrics(run.run_directory() / "metrics.jsonl");
  return {std::istreambuf_iterator<char>(metrics), {}};
}

/// What a resume of an easgd run with `changes` warns of. The run's rate falls to 0 within its epoch.
std::string warned(const std::vector<std::string>& changes) {
  SmallRun run({"strategy.name=easgd", "train.lr_policy=cosine", "train.lr=0.04", "run.epochs=1"});
  EXPECT_FALSE(run.train().failed);
  const auto end = run.resume(changes);
  EXPECT_FALSE(end.failed) << end.error.message;
  return metrics_of(run);
}

TEST(Resume, OtherDataAreAWarning) {
  const std::string warning = "the data are not those that the run was trained on so far";
  // As many samples of the same shape, but others.
  const auto text = warned({"run.epochs=2", "data.seed=2"});
  EXPECT_NE(text.find(warning + " (data.seed = 2, before 1)"), std::string::npos) << text;
  EXPECT_EQ(warned({"run.epochs=2"}).find(warning), std::string::npos);
}

TEST(Resume, AnotherOptimizerIsAWarning) {
  const auto text = warned({"run.epochs=2", "train.optimizer=sgd"});
  EXPECT_NE(text.find(R"(train.optimizer = \"sgd\": the run was trained with \"momentum\" so far, and lr = 0.04)"),
            std::string::npos)
      << text;
}

// Half a cosine over one epoch is at its end after it, and at half its height there when it is over two.
TEST(Resume, ScheduleThatBeginsAgainIsAWarning) {
  const auto text = warned({"run.epochs=2"});
  EXPECT_NE(text.find("the learning rate jumps from 0 to 0.02"), std::string::npos) << text;
  EXPECT_EQ(warned({"run.epochs=2", "train.lr_policy=constant"}).find("jumps"), std::string::npos);
}

TEST(Resume, SummaryPairsSamplesWithTheTimesOfTheWholeRun) {
  SmallRun run({"strategy.name=easgd", "run.epochs=2"});
  const auto first = run.train();
  ASSERT_FALSE(first.failed) << first.error.message;
  const auto end = run.resume({"run.epochs=3"});
  ASSERT_FALSE(end.failed) << end.error.message;
  std::uint64_t samples = 0, steps = 0;
  for (const auto& worker : end.summary.per_worker) {
    samples += worker.samples;
    steps += worker.steps;
    EXPECT_GT(worker.compute_s, first.summary.per_worker.at(worker.worker).compute_s);
  }
  EXPECT_EQ(samples, end.summary.samples);
  EXPECT_EQ(steps, end.summary.steps);
  EXPECT_GT(end.summary.exchange_count, first.summary.exchange_count);
}

}  // namespace
}  // namespace troupe::tests
