#include "experiment/report/console.hpp"

#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/experiment/report/sample_run.hpp"
#include "tests/experiment/report/screen.hpp"

namespace troupe::report {
namespace {

using experiment::Note;
using experiment::RunEnd;

using namespace std::chrono_literals;
using Mode = ConsoleOptions::Mode;
using Lines = std::vector<std::string>;

class ConsoleTest : public testing::Test {
 protected:
  ConsoleTest() {
    ::setenv("LC_ALL", "C", 1);
    ::unsetenv("NO_COLOR");
  }
  void open(Mode mode, bool color = false, std::stop_token stop = {}) {
    console_.emplace(ConsoleOptions{.mode = mode, .color = color, .stream = out_.stream(), .stop = stop}, clock_);
  }
  [[nodiscard]] Lines shown() const { return Screen(out_.text()).shown(); }

  Capture out_;
  core::ManualClock clock_;
  std::optional<Console> console_;
};

TEST_F(ConsoleTest, LiveHasALinePerWorkerAndTheBar) {
  open(Mode::live);
  console_->started(kRun);
  console_->progress(worker(1, 200));
  console_->progress(worker(0, 300));
  clock_.advance(100ms);
  console_->tick();
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], "demo: easgd on glyphs, lenet (431,080 parameters), 2 workers, 1 server");
  EXPECT_EQ(lines[1], "run directory runs/demo");
  EXPECT_EQ(lines[2], "worker 0      30     100/s  loss 0.0431  [comp 92 exch 3 wait 4 load 1%]");
  EXPECT_EQ(lines[3].substr(0, 18), "worker 1      20  ");
  EXPECT_EQ(lines[4], "loss  __  0.0431 to 0.0431");
  // 500 of 1,000 samples of epoch 1 at 200 per second: 2.5 s left, and another 5 s
  EXPECT_EQ(lines[5], "epoch 1/2  =========----------   50 %  200 images/s  0:03 left, 0:08 to the end");
}

TEST_F(ConsoleTest, LiveRedrawsAtMostTenTimesASecond) {
  open(Mode::live);
  console_->started(kRun);
  clock_.advance(100ms);
  console_->progress(worker(0, 100));
  const auto drawn = out_.text().size();
  for (int i = 0; i < 9; ++i) {
    clock_.advance(10ms);
    console_->progress(worker(0, 200));
    console_->tick();
  }
  EXPECT_EQ(out_.text().size(), drawn);
  clock_.advance(10ms);
  console_->tick();
  EXPECT_GT(out_.text().size(), drawn);
}

TEST_F(ConsoleTest, LiveScrollsNotesAndEpochsAbove) {
  open(Mode::live);
  console_->started(kRun);
  clock_.advance(1s);
  console_->progress(worker(0, 100));
  console_->note({Note::Level::warning, "disk is slow"});
  console_->epoch({.epoch = 1,
                   .epochs = 2,
                   .train_loss = 0.3123,
                   .train_accuracy = 0.904,
                   .test_loss = 0.0701,
                   .test_accuracy = 0.978,
                   .images_per_s = 9021.4,
                   .lr = 0.0333,
                   .train_s = 66.6});
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[2], "warning: disk is slow");
  EXPECT_EQ(lines[3], "epoch 1/2  loss 0.3123, test 0.0701  accuracy 97.80 %  9,021 images/s  1:07");
  EXPECT_EQ(lines[4].substr(0, 8), "worker 0");
}

TEST_F(ConsoleTest, NotesAreBrokenBetweenWords) {
  open(Mode::live);  // 80 columns
  std::string words;
  for (int i = 0; i < 30; ++i) words += fmt::format("{}word{}", i > 0 ? " " : "", i);
  console_->note({Note::Level::warning, words});
  const auto lines = shown();
  ASSERT_GT(lines.size(), 2u);
  std::string again = lines[0];
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_LT(lines[i].size(), 80u);
    EXPECT_TRUE(lines[i].starts_with("  word")) << lines[i];
    again += lines[i].substr(1);
  }
  EXPECT_EQ(again, "warning: " + words);
}

TEST_F(ConsoleTest, LiveGoesOnFromWhereARunWasResumed) {
  open(Mode::live);
  auto run = kRun;
  run.epoch_position = 1.25;
  console_->started(run);
  clock_.advance(1s);
  console_->progress(worker(0, 500));
  EXPECT_EQ(shown().back().substr(0, 10), "epoch 2/2 ");
  EXPECT_NE(shown().back().find(" 75 %"), std::string::npos);
}

// Of each five steps one is passed over: 200 computed samples are a quarter of an epoch of 1,000.
TEST_F(ConsoleTest, TheBarIsWhereTheLedgerIs) {
  open(Mode::live);
  console_->started(kRun);
  clock_.advance(1s);
  console_->progress(worker(0, 100));
  console_->progress(worker(1, 100));
  console_->ledger({.size = 1000, .done = 200, .given_up = 50, .free = 750});
  clock_.advance(1s);
  console_->progress(worker(0, 200));
  EXPECT_NE(shown().back().find(" 37 %"), std::string::npos) << shown().back();
  // 500 computed samples to the epoch's end, and 800 for the next one, at 200 per second.
  EXPECT_NE(shown().back().find("0:03 left, 0:07 to the end"), std::string::npos) << shown().back();
}

// 128 samples are computed for an epoch of 100, of which its evaluation tells.
TEST_F(ConsoleTest, BatchesThatWrapAroundDoNotMoveTheBarBeyondTheRun) {
  open(Mode::live);
  auto run = kRun;
  run.epochs = 20;
  run.epoch_samples = 100;
  console_->started(run);
  console_->progress(worker(0, 1280));
  console_->epoch({.epoch = 10, .epochs = 20, .samples = 1280});
  clock_.advance(1s);
  console_->progress(worker(0, 1344));
  EXPECT_EQ(shown().back().substr(0, 12), "epoch 11/20 ");
  EXPECT_NE(shown().back().find(" 50 %"), std::string::npos) << shown().back();
}

TEST_F(ConsoleTest, EndLeavesTheTableAndTheCursor) {
  open(Mode::live);
  console_->started(kRun);
  clock_.advance(1s);
  console_->progress(worker(0, 100));
  EXPECT_FALSE(Screen(out_.text()).cursor_visible);
  RunEnd end;
  auto& s = end.summary;
  s.samples = 2000;
  s.wall_s = 41.2;
  s.images_per_s = 198;
  s.test_loss = 0.034;
  s.test_accuracy = 0.9891;
  s.test_top5 = 0.9999;
  s.staleness_mean = 0.9;
  s.staleness_max = 3;
  s.per_worker = {worker(0, 1000), worker(1, 1000)};
  console_->ended(end);
  console_->tick();
  EXPECT_TRUE(Screen(out_.text()).cursor_visible);
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines[2], "worker      compute     exchange         wait         load images/s  stale");
  EXPECT_EQ(lines[3], "     0    9.2s  92%    0.3s   3%    0.4s   4%    0.1s   1%      100  0.9 (3)");
  EXPECT_EQ(lines[5], "   all    9.2s  92%    0.3s   3%    0.4s   4%    0.1s   1%      198  0.9 (3)");
  EXPECT_EQ(lines[6], "test accuracy 98.91 % (top-5 99.99 %), loss 0.0340");
  EXPECT_EQ(lines[7], "2,000 samples in 0:41, 198 images/s");
  EXPECT_EQ(lines[8], "runs/demo");
}

TEST_F(ConsoleTest, DestructionShowsTheCursor) {
  open(Mode::live);
  console_->started(kRun);
  clock_.advance(1s);
  console_->progress(worker(0, 100));
  console_.reset();
  EXPECT_TRUE(Screen(out_.text()).cursor_visible);
}

TEST_F(ConsoleTest, PlainHasOneProgressLineEveryFiveSeconds) {
  open(Mode::plain);
  console_->started(kRun);
  for (int i = 1; i <= 11; ++i) {
    clock_.advance(1s);
    console_->progress(worker(0, static_cast<std::uint64_t>(100 * i)));
    console_->tick();
  }
  const auto text = out_.text();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(shown(),
            (Lines{"demo: easgd on glyphs, lenet (431,080 parameters), 2 workers, 1 server", "run directory runs/demo",
                   "epoch 1/2   50 %  step 50  100 images/s  loss 0.0431  0:15 to the end",
                   "epoch 1/2  100 %  step 100  100 images/s  loss 0.0431  0:10 to the end"}));
}

TEST_F(ConsoleTest, PlainPrintsNothingWithoutProgress) {
  open(Mode::plain);
  console_->started(kRun);
  clock_.advance(5s);
  console_->progress(worker(0, 1000));
  const auto lines = shown().size();
  clock_.advance(30s);  // an evaluation
  console_->tick();
  EXPECT_EQ(shown().size(), lines);
}

TEST_F(ConsoleTest, AnEvaluationWithoutTrainingHasNoTrainingFigures) {
  open(Mode::plain);
  console_->epoch({.epoch = 1, .epochs = 2, .test_loss = 0.0701, .test_accuracy = 0.978});
  EXPECT_EQ(shown(), (Lines{"epoch 1/2  test 0.0701  accuracy 97.80 %"}));
}

TEST_F(ConsoleTest, AnEpochEndsWithItsReport) {
  open(Mode::live);
  console_->started(kRun);
  clock_.advance(1s);
  console_->progress(worker(0, 1000));
  EXPECT_EQ(shown().back().substr(0, 10), "epoch 1/2 ");
  EXPECT_NE(shown().back().find("100 %"), std::string::npos);
  console_->epoch({.epoch = 1, .epochs = 2});
  clock_.advance(1s);
  console_->tick();
  EXPECT_EQ(shown().back().substr(0, 10), "epoch 2/2 ");
}

TEST_F(ConsoleTest, QuietPrintsErrorsOnly) {
  open(Mode::quiet);
  console_->started(kRun);
  clock_.advance(10s);
  console_->progress(worker(0, 100));
  console_->epoch({});
  console_->note({Note::Level::warning, "disk is slow"});
  console_->ended({});
  EXPECT_EQ(out_.text(), "");
  console_->note({Note::Level::error, "no checkpoint could be written"});
  EXPECT_EQ(out_.text(), "error: no checkpoint could be written\n");
}

TEST_F(ConsoleTest, AutomaticIsPlainWithoutATerminal) {
  open(Mode::automatic);
  console_->started(kRun);
  clock_.advance(10s);
  console_->progress(worker(0, 100));
  EXPECT_EQ(out_.text().find('\x1b'), std::string::npos);
}

TEST_F(ConsoleTest, NoColorIsHonoured) {
  open(Mode::live, true);
  console_->started(kRun);
  EXPECT_NE(out_.text().find("\x1b[1mdemo\x1b[0m"), std::string::npos);
  ::setenv("NO_COLOR", "1", 1);
  const auto before = out_.text().size();
  open(Mode::live, true);
  console_->started(kRun);
  EXPECT_EQ(out_.text().substr(before).find('\x1b'), std::string::npos);
}

TEST_F(ConsoleTest, InterruptIsReportedOnce) {
  std::stop_source source;
  open(Mode::plain, false, source.get_token());
  console_->tick();
  source.request_stop();
  console_->tick();
  console_->tick();
  EXPECT_EQ(shown(),
            (Lines{"finishing the batches under way and saving a checkpoint; Ctrl-C again leaves without it"}));
}

TEST_F(ConsoleTest, ManyWorkersFitTheTerminal) {
  open(Mode::live);
  console_->started(kRun);
  for (std::uint32_t rank = 0; rank < 100; ++rank) console_->progress(worker(rank, 100));
  clock_.advance(1s);
  console_->tick();
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 25u);  // 24 rows: the first two lines scrolled out of sight
  EXPECT_EQ(lines[2].substr(0, 8), "worker 0");
  EXPECT_EQ(lines[22], "and 80 more workers");
  EXPECT_EQ(lines[23].substr(0, 6), "loss  ");
}

TEST_F(ConsoleTest, BeforeTheFirstStepThereIsNoLoss) {
  open(Mode::live);
  console_->started(kRun);
  console_->progress({.worker = 0});
  clock_.advance(1s);
  console_->tick();
  EXPECT_EQ(out_.text().find("0.0000"), std::string::npos) << out_.text();
  EXPECT_NE(out_.text().find("loss -"), std::string::npos) << out_.text();
  EXPECT_EQ(out_.text().find(" 0/s"), std::string::npos) << out_.text();
}

TEST_F(ConsoleTest, TheCurveAndTheLearningRateAreShown) {
  console_.emplace(ConsoleOptions{.mode = Mode::live,
                                  .color = false,
                                  .stream = out_.stream(),
                                  .learning_rate = [](double epochs) { return 0.1 * (2 - epochs); }},
                   clock_);
  auto run = kRun;
  run.lr_factor = 0.5;
  console_->started(run);
  auto progress = worker(0, 100);
  for (const double loss : {2.25, 1.5, 1.0, 0.5}) {
    progress.loss = loss;
    progress.recent_samples = 100;
    console_->progress(progress);
    progress.samples += 100;
  }
  clock_.advance(1s);
  console_->tick();
  const auto lines = shown();
  // 400 of 1,000 samples: 0.5 * 0.1 * (2 - 0.4)
  EXPECT_EQ(lines[lines.size() - 2], "loss  #=:_  2.2500 to 0.5000  lr 0.08");
}

TEST_F(ConsoleTest, AnEarlyStopIsNamedAtTheEnd) {
  open(Mode::plain);
  RunEnd end;
  end.summary.stopped_by = "max_seconds";
  console_->ended(end);
  EXPECT_NE(out_.text().find("stopped early, by run.max_seconds\n"), std::string::npos) << out_.text();
}

}  // namespace
}  // namespace troupe::report
