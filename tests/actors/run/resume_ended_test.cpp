// Resuming a run that is complete or cannot continue: the messages, and the files that must be kept.
#include <algorithm>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

TEST(Resume, ResumeOfACompleteRunIsAnError) {
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

/// As if the process had been killed after its last checkpoint: there is no summary, or an earlier session's; the metrics lack their
/// last line.
void forget_the_end(const SmallRun& run, const std::string& summary) {
  const auto metrics = lines_of(run.run_directory() / "metrics.jsonl");
  ASSERT_NE(metrics.back().find("\"kind\":\"ended\""), std::string::npos);
  {
    std::ofstream file(run.run_directory() / "metrics.jsonl");
    for (std::size_t i = 0; i + 1 < metrics.size(); ++i) file << metrics[i] << "\n";
    file << "{\"kind\":\"en";  // the line that was being written
  }
  std::filesystem::remove(run.run_directory() / "summary.json");
  if (!summary.empty()) std::ofstream(run.run_directory() / "summary.json") << summary << "\n";
}

TEST(Resume, RunKilledBeforeItsSummaryEndsAsIfUninterrupted) {
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
      EXPECT_EQ(nlohmann::json::parse(written[0]), earlier) << "every count, time, loss and hash";
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

/// The rate is too small for a better score. Evaluations are at ends of epochs, and within them.
TEST(Resume, RunThatEndedByPatienceOrTimeStaysAsItIs) {
  for (const char* limit : {"run.patience=2", "run.max_seconds=0.001"})
    for (const char* every : {"1 epoch", "7 steps"}) {
      SCOPED_TRACE(std::string(limit) + ", " + every);
      SmallRun run(
          {"train.lr=1e-9", "data.validation=0.1", "run.epochs=30", limit, std::string("run.evaluate_every=") + every});
      const auto first = run.train();
      ASSERT_FALSE(first.failed) << first.error.message;
      ASSERT_FALSE(first.summary.stopped_by.empty());
      for (int k = 0; k < 2; ++k) {
        const auto again = run.resume();
        ASSERT_FALSE(again.failed) << again.error.message;
        EXPECT_EQ(again.summary.steps, first.summary.steps);
        EXPECT_EQ(again.summary.center_hash, first.summary.center_hash);
        EXPECT_EQ(again.summary.stopped_by, first.summary.stopped_by);
        EXPECT_EQ(again.summary.validation.evaluations, first.summary.validation.evaluations);
      }
      const auto longer = run.resume({"run.patience=0", "run.max_seconds=0", "run.max_epochs=8"});
      ASSERT_FALSE(longer.failed) << longer.error.message;
      EXPECT_GT(longer.summary.steps, first.summary.steps);
    }
}

/// As if it had been killed before its first checkpoint.
TEST(Resume, RunWithoutACheckpointIsToBeStartedAgain) {
  SmallRun run;
  ASSERT_FALSE(run.train().failed);
  const auto checkpoints = run.run_directory() / "checkpoints";
  std::filesystem::remove_all(checkpoints);
  std::filesystem::create_directory(checkpoints);
  const auto end = run.resume();
  ASSERT_TRUE(end.failed);
  EXPECT_EQ(end.error.code, core::Errc::config);
  EXPECT_EQ(end.error.message, "there is no checkpoint in " + checkpoints.string() +
                                   ": the run ended before it saved one; start it again, as with `troupe train " +
                                   (run.run_directory() / "config.toml").string() + "`");
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

TEST(Resume, ARunBeyondItsNewLimitIsNotComplete) {
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

/// Rewrites plan.json: it gets another machine's choice for the first layer.
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
