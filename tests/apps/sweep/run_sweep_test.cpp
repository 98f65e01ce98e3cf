#include "apps/sweep/run_sweep.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/sweep/sweep_report.hpp"
#include "tests/apps/sweep/run_sweep_fixture.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A thousand times as fast: what waits for nodes does not make the test wait.
class FastClock final : public core::Clock {
 public:
  [[nodiscard]] core::Duration now() const noexcept override { return 1000 * clock_.now(); }

 private:
  core::SteadyClock clock_;
};

TEST_F(RunSweepTest, PromotedRunsGoOnAndNoEpochIsTrainedTwice) {
  const auto end = run();
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->interrupted);
  EXPECT_FALSE(end->stopped);
  EXPECT_EQ(end->record.trials.size(), 9U);
  EXPECT_EQ(end->record.state, "finished");
  const auto& best = end->record.trials[end->record.ranking.front()];
  EXPECT_EQ(best.scores.size(), 3U);
  std::int64_t scores = 0;
  for (const auto& event : events()) scores += event.kind == SweepEvent::Kind::score;
  EXPECT_EQ(calls(), static_cast<std::size_t>(scores)) << "one session per rung of a trial";
  for (const auto& trial : end->record.trials) {
    for (std::size_t rung = 0; rung < trial.scores.size(); ++rung) {
      const double epochs = std::array{1, 3, 9}[rung];
      if (!trial.scores[rung]) continue;
      EXPECT_NEAR(*trial.scores[rung], std::stod(trial.settings[0].second) * (1 - 0.5 / epochs), 1e-5);
    }
  }
  EXPECT_THAT(folder_.read("calls"), HasSubstr("--resume " + best.directory + " --set run.max_epochs=0"));
  EXPECT_THAT(folder_.read("runs/s/results.csv"), HasSubstr(",run,rung_epochs,score"));
}

/// What counts is written before a run begins, and its directory says the rest: wherever a sweep ends, before or after a run has trained, the
/// next start makes the decisions of a sweep that never ended.
TEST_F(RunSweepTest, ASweepThatEndsAtAnyStepGoesOnTheSame) {
  ASSERT_TRUE(run());
  const auto whole = events();
  const auto steps = calls();
  for (std::size_t step = 1; step <= steps; step += 3) {
    for (const char* when : {"before", "after"}) {
      std::filesystem::remove_all(folder_.file("runs"));
      std::filesystem::remove(folder_.file("calls"));
      folder_.write("fails", std::to_string(step) + " " + when);
      const auto first = run();
      ASSERT_TRUE(first) << first.error().message;
      ASSERT_TRUE(first->stopped) << step << when;
      std::filesystem::remove(folder_.file("fails"));
      ASSERT_TRUE(run());
      const auto again = events();
      ASSERT_EQ(again.size(), whole.size()) << step << when;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(again[i].step, whole[i].step) << step << when << i;
        EXPECT_EQ(again[i].settings, whole[i].settings) << step << when << i;
        EXPECT_EQ(again[i].result.score, whole[i].result.score) << step << when << i;
      }
    }
  }
}

TEST_F(RunSweepTest, ADivergedRunIsAResultAndNotTheBest) {
  const auto end = run();
  ASSERT_TRUE(end);
  for (const auto& trial : end->record.trials) {
    if (std::stod(trial.settings[0].second) <= 0.9) continue;
    EXPECT_EQ(trial.status, "diverged");
    EXPECT_FALSE(trial.scores.back());
    EXPECT_NE(end->record.ranking.front(), trial.trial);
  }
}

TEST_F(RunSweepTest, AFailureThatIsNotTheSettingsStopsTheSweepAndIsRepeated) {
  folder_.write("full", "");
  const auto end = run({"", ""});
  ASSERT_TRUE(end);
  ASSERT_TRUE(end->stopped);
  EXPECT_EQ(end->stopped->code, core::Errc::io);
  EXPECT_THAT(end->stopped->message, HasSubstr("no space left"));
  EXPECT_LE(end->record.trials.size(), 2U) << "no further run begins";
  EXPECT_TRUE(end->record.ranking.empty());
  std::filesystem::remove(folder_.file("full"));
  const auto again = run();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->stopped);
  EXPECT_EQ(again->record.trials.size(), 9U);
  EXPECT_TRUE(std::ranges::all_of(again->record.trials, [](const auto& trial) { return !trial.scores.empty(); }));
}

TEST_F(RunSweepTest, RunsOfALostNodeGoOnOnAnother) {
  const auto end = run({"lost:1", "good:1"});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->stopped);
  EXPECT_EQ(end->record.trials.size(), 9U);
  EXPECT_TRUE(std::ranges::all_of(end->record.trials, [](const auto& trial) { return !trial.scores.empty(); }));
  EXPECT_THAT(said(), HasSubstr("goes on elsewhere: lost:1: lost:1: no answer"));
  EXPECT_THAT(folder_.read("calls"), HasSubstr("--nodes good:1"));
}

/// Its result is in the directory. Nothing waits for the node then, and the search has more.
TEST_F(RunSweepTest, ANodeThatIsLostAfterItsRunHasEndedDoesNotEndTheSweep) {
  const FastClock fast;
  clock_ = &fast;
  const auto end = run({"late:1"});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->stopped);
  EXPECT_EQ(end->record.trials.size(), 9U);
  EXPECT_THAT(said(), Not(HasSubstr("goes on elsewhere"))) << "it has ended";
}

TEST_F(RunSweepTest, ReadersSeeWhatTrainsNow) {
  folder_.write("watches", "");
  folder_.write("fails", "3 before");
  ASSERT_TRUE(run()->stopped);
  const auto first = sweep::parse_record(folder_.read("seen"), "seen");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->state, "running");
  ASSERT_EQ(first->trials.size(), 1U);
  EXPECT_EQ(first->trials[0].training_to, 1);
  EXPECT_EQ(sweep::read_record(plan_.directory).value()->state, "interrupted");
  folder_.write("watches", "");
  ASSERT_TRUE(run());
  EXPECT_EQ(sweep::parse_record(folder_.read("seen"), "seen")->state, "running") << "before its first result";
  EXPECT_EQ(sweep::read_record(plan_.directory).value()->state, "finished");
}

/// A kill between the begin of such a trial and its end leaves a trial under way that must not be trained.
TEST_F(RunSweepTest, SettingsThatMakeNoRunAreNeverTrained) {
  const auto refused = [](double lr) { return lr > 0.4 && lr < 0.6; };
  plan_.check = [refused](const experiment::Settings& settings) -> core::Result<void> {
    if (refused(settings.train.lr)) return core::fail(core::Errc::config, "this rate is refused");
    return {};
  };
  ASSERT_TRUE(run());
  const auto whole = events();
  const auto failed = std::ranges::find(whole, SweepEvent::Kind::failed, &SweepEvent::kind);
  ASSERT_NE(failed, whole.end());
  const auto text = folder_.read("runs/s/sweep.jsonl");
  std::size_t end_of_begin = 0;
  for (auto line = whole.begin(); line <= failed; ++line) end_of_begin = text.find('\n', end_of_begin) + 1;
  folder_.write("runs/s/sweep.jsonl", text.substr(0, end_of_begin));
  const auto end = run();
  ASSERT_TRUE(end) << end.error().message;
  const auto again = events();
  ASSERT_EQ(again.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(again[i].step, whole[i].step) << i;
  for (const auto& trial : end->record.trials)
    EXPECT_TRUE(trial.directory.empty() || !refused(std::stod(trial.settings[0].second))) << trial.name;
}

TEST_F(RunSweepTest, ARunThatCannotBeResumedHereStopsTheSweepAndCountsLater) {
  folder_.write("moved", "");
  const auto end = run();
  ASSERT_TRUE(end);
  ASSERT_TRUE(end->stopped);
  EXPECT_EQ(end->stopped->code, core::Errc::config);
  EXPECT_THAT(end->stopped->message, HasSubstr("--replan"));
  std::filesystem::remove(folder_.file("moved"));
  const auto again = run();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->stopped);
  EXPECT_TRUE(std::ranges::none_of(events(), [](const auto& e) { return e.kind == SweepEvent::Kind::failed; }));
}

TEST_F(RunSweepTest, SettingsForWhichMemoryRunsOutAreLeftOut) {
  folder_.write("small", "");
  const auto end = run();
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->stopped) << end->stopped->message;
  EXPECT_EQ(end->record.trials.size(), 9U);
  for (const auto& trial : end->record.trials)
    EXPECT_EQ(trial.scores.empty(), std::stod(trial.settings[0].second) > 0.8);
}

/// Of the summaries that the stand-in has written. The ranking has the trials with the most epochs first.
TEST_F(RunSweepTest, TheTableIsInTheOrderOfTheMetricThatIsAskedFor) {
  const auto end = run();
  ASSERT_TRUE(end) << end.error().message;
  const auto rows = [&](const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    std::vector<std::vector<std::string>> all;
    for (std::size_t i = 0; i < end->record.trials.size() && std::getline(lines, line); ++i) {
      std::istringstream words(line);
      all.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
    }
    return all;
  };
  const auto value_of = [&](const std::string& trial, const char* group, const char* key) {
    const auto summary = nlohmann::json::parse(end->statuses[std::stoul(trial)].summary);
    return group == nullptr ? summary[key] : summary[group][key];
  };

  const auto by_score = rows(table_of(end->record, 0, metric_of("test.accuracy", end->statuses)));
  ASSERT_EQ(by_score.size(), end->record.trials.size());
  std::vector<double> scores;
  for (const auto& row : by_score) {
    const auto value = value_of(row[0], "test", "accuracy");
    scores.push_back(value.is_number() ? value.get<double>() : -1);  // diverged
  }
  EXPECT_TRUE(std::ranges::is_sorted(scores, std::greater<>{})) << testing::PrintToString(scores);
  // That order may be the ranking's. Fewest epochs first never is.
  const auto text = table_of(end->record, 0, metric_of("epochs", end->statuses));
  EXPECT_THAT(text.substr(0, text.find('\n')), testing::ContainsRegex("epochs  test.accuracy  epochs  status$"));
  int before = 0;
  for (const auto& row : rows(text)) {
    EXPECT_EQ(row[4], value_of(row[0], nullptr, "epochs").dump()) << "its own column";
    EXPECT_GE(std::stoi(row[4]), before) << "fewest first";
    before = std::stoi(row[4]);
  }
}

TEST_F(RunSweepTest, ASweepThatFailsItselfLetsItsRunsSaveFirst) {
  folder_.write("last", "");
  const auto end = run({"", ""});
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("cannot start " + train_));
  EXPECT_THAT(said(), HasSubstr("no further run begins; runs under way save a checkpoint"));
  const auto record = sweep::read_record(plan_.directory).value();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, "interrupted");
  const auto saved = std::ranges::find(record->trials, "interrupted", &sweep::TrialRecord::status);
  ASSERT_NE(saved, record->trials.end()) << "killed before it could save";
  const auto directory = saved->directory;

  std::filesystem::rename(folder_.file("gone"), train_);
  std::filesystem::remove(folder_.file("last"));
  const auto again = run({"", ""});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->record.trials.size(), 9U);
  EXPECT_THAT(folder_.read("calls"), HasSubstr("--resume " + directory));
}

/// As where the disk with the children's output is full.
/// As of a program that evaluates its loss: it has not diverged.
TEST_F(RunSweepTest, ARunWithoutTheMetricStopsTheSweep) {
  folder_.write("silent", "");
  const auto end = run();
  ASSERT_TRUE(end) << end.error().message;
  ASSERT_TRUE(end->stopped);
  EXPECT_EQ(end->stopped->code, core::Errc::config);
  EXPECT_THAT(end->stopped->message, HasSubstr("has no test.accuracy: name another metric in [sweep]"));
  EXPECT_EQ(end->record.trials.size(), 1U);
}

TEST_F(RunSweepTest, ARunWhoseWordsAreLostCountsByItsRecords) {
  folder_.write("mute", "");
  const auto end = run();
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->stopped) << end->stopped->message;
  EXPECT_EQ(end->record.trials.size(), 9U);
  EXPECT_TRUE(std::ranges::all_of(end->record.trials, [](const auto& trial) { return !trial.scores.empty(); }));
}

/// Of a release that knew a key less, or wrote logs of format 1: its sweeps go on here, and their logs say what this release knows.
TEST_F(RunSweepTest, ASweepOfAnEarlierReleaseGoesOn) {
  ASSERT_TRUE(run());
  const auto log = folder_.read("runs/s/sweep.jsonl");
  const auto decisions = log.substr(log.find('\n') + 1);
  auto older = plan_.identity.settings;
  const auto key = older[0].find("keep_checkpoints");
  ASSERT_NE(key, std::string::npos);
  older[0].erase(key, older[0].find('\n', key) + 1 - key);
  const auto begins = calls();
  for (const nlohmann::json& first :
       {nlohmann::json{{"kind", "sweep"}, {"format", 1}, {"fingerprint", plan_.identity.whole}},
        nlohmann::json{
            {"kind", "sweep"}, {"format", 2}, {"fingerprint", plan_.identity.fingerprint}, {"settings", older}}}) {
    folder_.write("runs/s/sweep.jsonl", first.dump() + "\n" + decisions);
    ASSERT_TRUE(peek(plan_)) << peek(plan_).error().message;
    const auto end = run();
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->record.trials.size(), 9U);
    EXPECT_EQ(calls(), begins) << "nothing is trained again";
    EXPECT_EQ(folder_.read("runs/s/sweep.jsonl"), log);
  }
}

TEST_F(RunSweepTest, ASweepOfAnEarlierReleaseWithOtherSettingsIsRefused) {
  ASSERT_TRUE(run());
  auto other = plan_;
  other.identity.fingerprint = other.identity.whole = "of another range";
  EXPECT_EQ(peek(other).error().code, core::Errc::config);
  other = plan_;
  auto& settings = other.identity.settings[0];
  const auto key = settings.find("epochs = 9");
  ASSERT_NE(key, std::string::npos);
  settings.replace(key, std::string_view("epochs = 9").size(), "epochs = 8");
  EXPECT_THAT(peek(other).error().message, HasSubstr("were begun with other ranges"));
  folder_.write("runs/s/sweep.jsonl",
                nlohmann::json{{"kind", "sweep"}, {"format", 1}, {"fingerprint", "of another range"}}.dump() + "\n");
  EXPECT_THAT(peek(plan_).error().message, HasSubstr("were begun with other ranges"));
  folder_.write("runs/s/sweep.jsonl", "{\"kind\": \"sweep\", \"format\": 3}\n");
  EXPECT_THAT(peek(plan_).error().message, HasSubstr("a later release"));
}

TEST_F(RunSweepTest, ALogThatCannotBeReadIsNotABeginning) {
  std::filesystem::create_directories(folder_.file("runs/s/sweep.jsonl"));
  const auto before = peek(plan_);
  ASSERT_FALSE(before);
  EXPECT_EQ(before.error().code, core::Errc::io);
  EXPECT_THAT(before.error().message, HasSubstr("runs/s/sweep.jsonl: Is a directory"));
}

TEST_F(RunSweepTest, AnInterruptBeforeTheFirstRunBeginsNone) {
  std::stop_source stop;
  stop.request_stop();
  const auto end = run({""}, stop.get_token());
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->interrupted);
  EXPECT_EQ(calls(), 0U);
}

}  // namespace
}  // namespace troupe::apps
