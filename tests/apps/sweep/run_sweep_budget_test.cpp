// Where a sweep's budget ends it, over several sessions.
#include <algorithm>
#include <array>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/sweep/run_sweep_fixture.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;

/// An hour for each run that trains until it is told to end.
class RunsClock final : public core::Clock {
 public:
  explicit RunsClock(std::string trains) : trains_(std::move(trains)) {}
  [[nodiscard]] core::Duration now() const noexcept override {
    std::error_code error;
    const auto runs = std::filesystem::file_size(trains_, error);
    return error ? core::Duration{} : std::chrono::hours(runs);
  }

 private:
  std::string trains_;
};

/// The steps say what has been trained, wherever a sweep ended. 30 epochs: runs have 9, and are compared after 1 and 3.
TEST_F(RunSweepTest, ABudgetOfEpochsHoldsOverAllSessions) {
  plan_.options.trials = 0;
  plan_.options.epochs = 30;
  const auto trained = [&] {
    double epochs = 0;
    for (const auto& event : events())
      if (event.kind == SweepEvent::Kind::score)
        epochs += event.result.score ? std::array{1.0, 2.0, 6.0}[event.step.rung] : 0.25;
    return epochs;
  };
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  const auto whole = events();
  EXPECT_LE(trained(), 30);
  EXPECT_GT(trained(), 30 - 9);
  EXPECT_EQ(sweep::epochs_trained(first->record), trained());
  EXPECT_TRUE(std::ranges::any_of(first->record.trials, [](const auto& trial) { return trial.diverged_after == 0.25; }))
      << "a run has diverged";
  EXPECT_EQ(first->record.most_epochs, 30);
  EXPECT_EQ(first->record.trials[first->record.ranking.front()].scores.size(), 3U) << "one is trained to its end";
  const auto steps = calls();
  for (std::size_t step = 2; step <= steps; step += 4) {
    std::filesystem::remove_all(folder_.file("runs"));
    std::filesystem::remove(folder_.file("calls"));
    folder_.write("fails", std::to_string(step) + " before");
    ASSERT_TRUE(run()->stopped);
    std::filesystem::remove(folder_.file("fails"));
    ASSERT_TRUE(run());
    ASSERT_EQ(events().size(), whole.size()) << step;
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(events()[i].step, whole[i].step) << step << " " << i;
  }
  plan_.options.epochs = 60;
  const auto more = run();
  ASSERT_TRUE(more);
  EXPECT_LE(trained(), 60);
  EXPECT_GT(trained(), 60 - 9);
  EXPECT_GT(more->record.trials.size(), first->record.trials.size());
}

TEST_F(RunSweepTest, TheTimeIsABudgetOfAllSessionsTogether) {
  plan_.options.trials = 0;
  plan_.most_s = 1e-6;
  const auto end = run();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->record.trials.empty());
  EXPECT_FALSE(end->interrupted) << "the budget is used up: this is its end";
}

/// The clock says 3 hours once three runs train. They save a checkpoint then, and go on when there are more hours.
TEST_F(RunSweepTest, RunsUnderWayAtTheEndOfTheHoursGoOnWithMoreHours) {
  const RunsClock clock(folder_.file("trains"));
  clock_ = &clock;
  plan_.options.trials = 9;
  constexpr double kHour_s = 3600;
  plan_.most_s = 3 * kHour_s;
  folder_.write("long", "");
  const auto end = run({"", "", ""});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->interrupted) << "the budget is used up: this is its end";
  EXPECT_FALSE(end->stopped);
  EXPECT_EQ(end->record.state, "finished");
  ASSERT_EQ(end->record.trials.size(), 3U);
  for (const auto& trial : end->record.trials) EXPECT_EQ(trial.status, "interrupted");
  EXPECT_THAT(said(), HasSubstr("the hours are over"));
  EXPECT_EQ(calls(), 3U);

  std::filesystem::remove(folder_.file("long"));
  std::filesystem::remove(folder_.file("trains"));
  ASSERT_TRUE(run({"", "", ""}));
  EXPECT_EQ(calls(), 3U) << "the hours of the session before count";

  plan_.most_s = 4 * kHour_s;
  const auto more = run({"", "", ""});
  ASSERT_TRUE(more);
  EXPECT_EQ(more->record.trials.size(), 9U);
  EXPECT_TRUE(std::ranges::all_of(more->record.trials, [](const auto& trial) { return !trial.scores.empty(); }));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_THAT(folder_.read("calls"), HasSubstr("--resume " + more->record.trials[i].directory));
}

}  // namespace
}  // namespace troupe::apps
