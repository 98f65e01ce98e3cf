// Whole runs whose evaluations decide, over several sessions: limits stop them between two evaluations, or another split decides.
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

std::vector<nlohmann::json> recorded(const SmallRun& run, const std::string& kind) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(run.run_directory() / "metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    auto line = nlohmann::json::parse(text);
    if (line["kind"] == kind) lines.push_back(std::move(line));
  }
  return lines;
}

/// After which epochs the model was evaluated.
std::vector<double> evaluated(const SmallRun& run) {
  std::vector<double> epochs;
  for (const auto& line : recorded(run, "evaluation")) epochs.push_back(line["epoch"]);
  return epochs;
}

/// As a sweep does that stops runs and goes on with the best ones.
TEST(LimitedEpochs, AStoppedRunReachesTheBitsOfOneThatWasNotStopped) {
  const std::vector<std::string> options{
      "data.train_samples=640", "data.validation=\"0.2\"",        "data.batch=32",       "model.widths=[16]",
      "run.epochs=9",           "train.lr_policy=plateau",        "train.lr_patience=1", "train.lr_gamma=0.5",
      "train.lr=1e-4",          "run.evaluate_every=\"2 epochs\""};
  SmallRun whole(options);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;
  ASSERT_LT(recorded(whole, "evaluation").back()["lr"].get<double>(), 0.9e-4) << "the schedule must have fallen";
  EXPECT_EQ(evaluated(whole), (std::vector<double>{2, 4, 6, 8, 9}));
  auto limited = options;
  limited.emplace_back("run.max_epochs=1");
  SmallRun parts(limited);
  ASSERT_FALSE(parts.train().failed);
  ASSERT_FALSE(parts.resume({"run.max_epochs=3"}).failed);
  const auto end = parts.resume({"run.max_epochs=0"});
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(evaluated(parts), (std::vector<double>{1, 2, 3, 4, 6, 8, 9}));
  EXPECT_EQ(recorded(parts, "evaluation").back()["lr"], recorded(whole, "evaluation").back()["lr"]);
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// A split of `samples` pictures of 4 × 4 noise and random labels, in the files of MNIST.
void write_split(const std::filesystem::path& folder, const std::string& split, std::uint32_t samples, unsigned seed) {
  std::filesystem::create_directories(folder);
  std::mt19937 random(seed);
  std::ofstream images(folder / (split + "-images-idx3-ubyte"), std::ios::binary);
  images << big_endian(0x803) << big_endian(samples) << big_endian(4) << big_endian(4);
  for (std::uint32_t k = 0; k < samples * 16; ++k) images.put(static_cast<char>(random() % 256));
  std::ofstream labels(folder / (split + "-labels-idx1-ubyte"), std::ios::binary);
  labels << big_endian(0x801) << big_endian(samples);
  for (std::uint32_t k = 0; k < samples; ++k) labels.put(static_cast<char>(random() % 10));
}

class OtherSplit : public ::testing::Test {
 protected:
  OtherSplit() {
    const auto folder = files_.directory() / "data";
    write_split(folder, "train", 200, 1);
    write_split(folder, "t10k", 40, 2);
    write_split(files_.directory() / "one", "t10k", 30, 3);
    write_split(files_.directory() / "other", "t10k", 30, 4);
    options_ = {"data.name=idx",        "data.path=\"" + folder.string() + "\"",
                "data.train_samples=0", "data.test_samples=0",
                "run.epochs=4",         "run.max_epochs=2"};
  }
  [[nodiscard]] std::string validation(const std::string& name) const {
    return "data.validation=\"folder:" + (files_.directory() / name).string() + "\"";
  }
  /// The warnings of a run that begins with `before` and goes on with `after`, and its end.
  std::pair<std::string, experiment::RunEnd> resumed(
      const std::string& before, const std::string& after, const std::function<void()>& between = [] {}) {
    auto options = options_;
    options.push_back(before);
    run_ = std::make_unique<SmallRun>(options);
    const auto first = run_->train();
    EXPECT_FALSE(first.failed) << first.error.message;
    first_steps_ = first.summary.steps;
    between();
    auto end = run_->resume({"run.max_epochs=0", after});
    EXPECT_FALSE(end.failed) << end.error.message;
    std::string warnings;
    for (const auto& line : recorded(*run_, "note"))
      if (line["level"] == "warning") warnings += line["text"].get<std::string>() + "\n";
    return {warnings, end};
  }
  /// The best evaluation of the second session, and its model, are the run's.
  void expect_best_of_the_second_session(const experiment::RunEnd& end) const {
    double best = 0;
    for (const auto& line : recorded(*run_, "evaluation"))
      if (line["epoch"] > 2) best = std::max(best, line["accuracy"].get<double>());
    EXPECT_EQ(end.summary.validation.best_accuracy, best);
    EXPECT_GT(end.summary.validation.best_epoch, 2);
    EXPECT_EQ(end.summary.validation.evaluations, 2U);
    const auto kept = nn::load_checkpoint((run_->run_directory() / "best.safetensors").string());
    ASSERT_TRUE(kept) << kept.error().message;
    const auto totals = experiment::parse_totals(kept->file.text("totals").value());
    EXPECT_GT(totals->steps, first_steps_) << "a model of the second session";
  }

  SmallRun files_;  // its directory
  std::vector<std::string> options_;
  std::unique_ptr<SmallRun> run_;
  std::uint64_t first_steps_ = 0;
};

constexpr auto kWarning = "the validation split is not the one that decided so far";

TEST_F(OtherSplit, ScoresOfTheTestSplitDoNotDecideOnTheFirstValidationSplit) {
  const auto [warnings, end] = resumed("data.validation=none", validation("one"));
  EXPECT_NE(warnings.find(kWarning), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("before \"none\""), std::string::npos) << warnings;
  expect_best_of_the_second_session(end);
}

TEST_F(OtherSplit, ScoresOfOneFolderDoNotDecideOnAnother) {
  const auto [warnings, end] = resumed(validation("one"), validation("other"));
  EXPECT_NE(warnings.find(kWarning), std::string::npos) << warnings;
  expect_best_of_the_second_session(end);
}

TEST_F(OtherSplit, OtherFilesInTheFolderAreAnotherSplit) {
  const auto [warnings, end] =
      resumed(validation("one"), validation("one"), [&] { write_split(files_.directory() / "one", "t10k", 30, 5); });
  EXPECT_NE(warnings.find(std::string(kWarning) + " (the files have changed)"), std::string::npos) << warnings;
  expect_best_of_the_second_session(end);
}

TEST_F(OtherSplit, TheSameSplitGoesOnDeciding) {
  const auto moved = [&] { std::filesystem::rename(files_.directory() / "one", files_.directory() / "moved"); };
  const auto [warnings, end] = resumed(validation("one"), validation("moved"), moved);
  EXPECT_EQ(warnings.find(kWarning), std::string::npos) << warnings;
  EXPECT_EQ(end.summary.validation.evaluations, 4U);
}

}  // namespace
}  // namespace troupe::tests
