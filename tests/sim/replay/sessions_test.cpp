// Runs of several sessions: each segment is replayed with the settings of its recording, and no segment may be missing.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "experiment/directory/run_directory.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

namespace fs = std::filesystem;
using Options = std::vector<std::string>;

/// A learning rate that depends on the length of the run, as in most example configurations.
Options falling_rate(const Options& more = {}) {
  Options options{"strategy.name=easgd", "strategy.tau=2", "train.lr_policy=polynomial", "train.lr=0.03"};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

void expect_all_as_recorded(const SmallRun& run, std::size_t segments, const std::string& center_hash) {
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->segments.size(), segments);
  expect_whole(*report);
  EXPECT_EQ(report->summary.center_hash, center_hash);
}

TEST(ReplaySessions, EachSessionIsReplayedWithItsOwnSettings) {
  SmallRun run(falling_rate());
  ASSERT_FALSE(run.train().failed);
  std::size_t segments = 1;
  for (const Options& changes : {Options{"run.epochs=2"}, Options{"run.epochs=3", "cluster.workers=1"},
                                 Options{"run.epochs=4", "data.batch=[10, 40]", "cluster.workers=2"},
                                 Options{"run.epochs=5", "data.batch=20", "strategy.name=downpour"}}) {
    SCOPED_TRACE(testing::PrintToString(changes));
    const auto end = run.resume(changes);
    ASSERT_FALSE(end.failed) << end.error.message;
    expect_all_as_recorded(run, ++segments, end.summary.center_hash);
  }
}

TEST(ReplaySessions, ChangesAreMadeToEachSessionsSettings) {
  SmallRun run(falling_rate({"strategy.alpha=0.3"}));
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"run.epochs=2", "cluster.workers=1"});
  ASSERT_FALSE(end.failed) << end.error.message;
  for (const auto* alpha : {"0.3", "0.1"}) {
    const auto report = replayed(run, {std::string("strategy.alpha=") + alpha});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->segments.size(), 2U);
    EXPECT_EQ(report->summary.steps, end.summary.steps);
    EXPECT_EQ(report->summary.center_hash == end.summary.center_hash, std::string(alpha) == "0.3")
        << "what was recorded gives what was recorded";
  }
}

// Recorded with 3 and relabelled: members of a session of arithmetic 2 went on from the average, so the replay diverges.
TEST(ReplaySessions, MembersTakeOverWhatTheirSessionsArithmeticDid) {
  SmallRun run(falling_rate({"train.ema=0.9"}));
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"run.epochs=2", "train.ema=0"});
  ASSERT_FALSE(end.failed) << end.error.message;
  expect_all_as_recorded(run, 2, end.summary.center_hash);
  change_plan(run, [](auto& plan) { plan["arithmetic"] = 2; });
  const auto report = replayed(run);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::diverged) << report.error().message;
  EXPECT_NE(report.error().message.find("journal-0002.bin"), std::string::npos) << report.error().message;
}

TEST(ReplaySessions, SegmentWithoutItsOwnSettingsHasTheRuns) {
  SmallRun run(falling_rate());
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  ASSERT_TRUE(fs::remove(run.run_directory() / "journal-0001.config.toml"));
  expect_all_as_recorded(run, 1, end.summary.center_hash);
}

TEST(ReplaySessions, OnlyTheOldestSegmentsMayBeMissing) {
  SmallRun run(falling_rate({"data.train_samples=120"}));
  ASSERT_FALSE(run.train().failed);
  experiment::RunEnd end;
  for (const auto* epochs : {"run.epochs=2", "run.epochs=3", "run.epochs=4"}) {
    end = run.resume({epochs});
    ASSERT_FALSE(end.failed) << end.error.message;
  }
  const auto remove = [&](const std::string& number) {
    ASSERT_TRUE(fs::remove(run.run_directory() / ("journal-" + number + ".bin")));
  };
  remove("0003");
  const auto one = replayed(run);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, core::Errc::corrupt);
  EXPECT_NE(one.error().message.find("segment 3 is missing"), std::string::npos) << one.error().message;
  remove("0002");
  const auto two = replayed(run);
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("segments 2, 3 are missing"), std::string::npos) << two.error().message;
  remove("0001");
  expect_all_as_recorded(run, 1, end.summary.center_hash);
  const auto rest = replayed(run);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(rest->missing, 3U);
  EXPECT_FALSE(rest->complete());
  ASSERT_EQ(rest->notes.size(), 1U);
  EXPECT_EQ(rest->notes[0].level, experiment::Note::Level::warning);
  // An epoch of 120 samples is 6 batches of 20: the fourth epoch begins after 18 batches.
  EXPECT_EQ(
      rest->notes[0].text,
      run.run_directory().string() +
          ": segments 1 to 3 are missing: the replay begins with segment 4, at step 18 of the run; run.journal keeps "
          "all of them: they were removed, or lost");
}

TEST(ReplaySessions, BoundedJournalNamesWhereTheReplayBegins) {
  const auto [run, end] = train_bounded(falling_rate({"run.epochs=12", "run.journal=30 KB", "model.widths=[4]"}));
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(*run);
  ASSERT_TRUE(report) << report.error().message;
  expect_whole(*report, end);
  ASSERT_GT(report->missing, 0U);
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_EQ(report->notes[0].level, experiment::Note::Level::info);
  EXPECT_NE(report->notes[0].text.find("run.journal keeps the newest only"), std::string::npos)
      << report->notes[0].text;
}

TEST(ReplaySessions, StepsMissingFromAllSegmentsAreNamed) {
  SmallRun run(falling_rate({"data.train_samples=120"}));
  ASSERT_FALSE(run.train().failed);
  ASSERT_FALSE(run.resume({"run.epochs=2", "run.journal=off"}).failed);
  const auto end = run.resume({"run.epochs=3", "run.journal=all"});
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  expect_whole(*report, end);
  EXPECT_EQ(report->missing, 0U);
  EXPECT_EQ(report->unrecorded, 6U);
  EXPECT_FALSE(report->complete());
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_EQ(report->notes[0].level, experiment::Note::Level::warning);
  EXPECT_NE(
      report->notes[0].text.find("journal-0002.bin: it begins at step 12, and the segments before it end at step 6"),
      std::string::npos)
      << report->notes[0].text;
  EXPECT_NE(report->notes[0].text.find("the journal was off"), std::string::npos) << report->notes[0].text;
}

TEST(ReplaySessions, StepsBehindTheLastSegmentAreNamed) {
  SmallRun run(falling_rate({"data.train_samples=120"}));
  ASSERT_FALSE(run.train().failed);
  ASSERT_FALSE(run.resume({"run.epochs=2", "run.journal=off"}).failed);
  const auto summary = run.run_directory() / "summary.json";
  for (const bool has_summary : {true, false}) {
    if (!has_summary) {  // as if the last session had been killed after its checkpoint
      ASSERT_TRUE(fs::remove(summary));
    }
    const auto report = replayed(run);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->unrecorded, 6U);
    EXPECT_FALSE(report->complete());
    ASSERT_EQ(report->notes.size(), 1U);
    EXPECT_EQ(report->notes[0].text,
              (run.run_directory() / "journal-0001.bin").string() +
                  ": the segments end at step 6, and the run at step 12: no segment has the steps between (the journal "
                  "was off, or could not be written)");
  }
}

TEST(ReplaySessions, LostRecordsAndDisabledJournalHaveDifferentNotes) {
  SmallRun run(falling_rate({"data.train_samples=120"}));
  ASSERT_FALSE(run.train().failed);
  const auto first = run.run_directory() / "journal-0001.bin";
  fs::resize_file(first,
                  fs::file_size(first) * 2 / 3);  // as killed before the rest was written, and behind its checkpoint
  const auto end = run.resume({"run.epochs=2"});
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->unrecorded, 0U);
  ASSERT_EQ(report->notes.size(), 1U);
  const auto& text = report->notes[0].text;
  EXPECT_NE(text.find("journal-0002.bin: it begins at step 6, and the segments before it end at step "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("was lost with the end of their records"), std::string::npos) << text;
  EXPECT_EQ(text.find("the journal was off"), std::string::npos) << text;
}

}  // namespace
}  // namespace troupe::tests
