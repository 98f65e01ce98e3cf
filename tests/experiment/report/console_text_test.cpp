#include "experiment/report/console_text.hpp"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "tests/experiment/report/sample_run.hpp"

namespace troupe::report {
namespace {

using experiment::RunEnd;
using experiment::WorkerProgress;

TEST(ConsoleTextTest, NumbersAndTimesAreFormatted) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(clock_time(7), "0:07");
  EXPECT_EQ(clock_time(754), "12:34");
  EXPECT_EQ(clock_time(3 * 3600 + 5 * 60 + 9), "3:05:09");
  EXPECT_EQ(clock_time(-1), "-:--");
  EXPECT_EQ(clock_time(std::numeric_limits<double>::infinity()), "-:--");
  EXPECT_EQ(loss_text(0.04312), "0.0431");
  EXPECT_EQ(loss_text(12.345), "12.35");
  EXPECT_EQ(loss_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(ConsoleTextTest, WideTerminalsShowMoreOfAWorker) {
  EXPECT_EQ(
      worker_line(worker(0, 300), 4512, 120).render(200, false),
      "worker 0  step       30    4,512 images/s  loss 0.0431  staleness 0.9  [compute 92 exch 3 wait 4 load 1%]");
  auto even = worker(10, 1'000'000);
  even.compute_s = even.exchange_s = even.wait_s = even.load_s = 1;
  EXPECT_LE(worker_line(even, 12'345, 80).columns(), 80u);
  EXPECT_LE(worker_line(even, 12'345, 110).columns(), 110u);
}

TEST(ConsoleTextTest, NarrowTerminalsShowWholeFields) {
  EXPECT_EQ(worker_line(worker(0, 300), 100, 59).fitted(59).render(200, false),
            "worker 0      30  loss 0.0431  comp 92%  exch  3%  wait  4%");
  EXPECT_EQ(worker_line(worker(0, 300), 100, 50).fitted(50).render(200, false),
            "worker 0      30  loss 0.0431  comp 92%  exch  3%");
  const Position half{
      .epoch = 1, .epochs = 3, .fraction = 0.5, .images_per_s = 1000, .epoch_left_s = 10, .run_left_s = 50};
  EXPECT_EQ(bar_line(half, 59, false).fitted(59).render(200, false),
            "epoch 1/3  ====----   50 %  1,000 images/s  0:10 left");
}

TEST(ConsoleTextTest, TheClosingTableFitsNarrowTerminals) {
  RunEnd end;
  end.summary.per_worker = {worker(0, 1000), worker(1, 100'000)};
  for (auto& w : end.summary.per_worker) {
    w.staleness.assign(21, 10);
    w.waits = {0, 3, 0};
  }
  end.summary.test_top5 = 0.9999;
  for (const std::size_t columns : {40U, 59U, 79U, 199U})
    for (const auto& line : closing_table(end, "", columns))
      for (const auto& part : line.wrapped(columns))
        EXPECT_LE(part.columns(), std::max<std::size_t>(columns, 48)) << columns << ": " << part.render(500, false);
  const auto narrow = closing_table(end, "", 59);
  EXPECT_EQ(narrow[0].render(200, false), "worker  compute  exchange  wait  load  images/s  stale");
  EXPECT_EQ(narrow[1].render(200, false), "     0      92%        3%    4%    1%       100  0.9 (3)");
}

TEST(ConsoleTextTest, PartsOfComputingBreakBetweenThem) {
  RunEnd end;
  for (int rank = 0; rank < 2; ++rank) {
    auto w = worker(rank, 1000);
    w.forward_s = 3 + rank, w.backward_s = 6, w.optimizer_s = 1;
    end.summary.per_worker.push_back(w);
  }
  std::string all;
  for (const auto& line : closing_table(end, "", 80))
    for (const auto& part : line.wrapped(80)) all += part.render(200, false) + "\n";
  // 3 of 10 and 4 of 11 s forward, 6 of both, 1 of both.
  EXPECT_NE(all.find("computing: forward 33 % (30 to 36), backward 57 % (55 to 60)"), std::string::npos) << all;
  EXPECT_NE(all.find("optimizer 10 % (9 to 10)\n"), std::string::npos) << "the whole word: " << all;
}

TEST(ConsoleTextTest, SlowLoadingAndReplacedSamplesAreSaid) {
  std::vector<WorkerProgress> workers{worker(0, 1000), worker(1, 1000)};  // 10 s each
  workers[0].load_s = workers[1].load_s = 0;
  EXPECT_FALSE(slow_loading_line(workers));
  for (auto& w : workers) w.compute_s = 8, w.exchange_s = w.wait_s = 0, w.load_s = 2;
  EXPECT_EQ(slow_loading_line(workers)->render(80, false),
            "workers stood still 20 % of their time for batches: raise data.decode_threads");
  RunEnd end;
  workers[1].replaced = 3;
  end.summary.per_worker = workers;
  std::string all;
  for (const auto& line : closing_table(end, "", 80)) all += line.render(200, false) + "\n";
  EXPECT_NE(all.find("raise data.decode_threads\n"), std::string::npos) << all;
  EXPECT_NE(all.find("3 samples that could not be read: others stood in their place (data.max_bad)\n"),
            std::string::npos);
}

/// It loads its samples itself, and its evaluation may tell an accuracy only.
TEST(ConsoleTextTest, AProgramIsToldNothingOfDecodersAndOfALossThatItDoesNotTell) {
  RunEnd end;
  end.summary.per_worker = {worker(0, 1000)};
  end.summary.per_worker[0].load_s = 20;
  end.summary.dataset = "numbers";
  end.summary.test_accuracy = 0.5;
  end.summary.test_loss = std::numeric_limits<double>::quiet_NaN();
  std::string all;
  for (const auto& line : closing_table(end, "", 80)) all += line.render(200, false) + "\n";
  EXPECT_EQ(all.find("data.decode_threads"), std::string::npos) << all;
  EXPECT_NE(all.find("\ntest accuracy 50.00 %\n"), std::string::npos) << all;

  experiment::EpochReport report;
  report.epoch = 1, report.epochs = 3, report.train_loss = 0.25, report.images_per_s = 100, report.test_accuracy = 0.5;
  report.test_loss = end.summary.test_loss;
  EXPECT_TRUE(
      epoch_line(report).render(200, false).starts_with("epoch 1/3  loss 0.2500  accuracy 50.00 %  100 images/s"));
  report.test_loss = 0.5;
  EXPECT_TRUE(
      epoch_line(report).render(200, false).starts_with("epoch 1/3  loss 0.2500, test 0.5000  accuracy 50.00 %"));
  report.images_per_s = 0;
  EXPECT_EQ(epoch_line(report).render(200, false), "epoch 1/3  test 0.5000  accuracy 50.00 %");
}

TEST(ConsoleTextTest, TheLongestWaitNamesBothSides) {
  std::vector<WorkerProgress> workers{worker(0, 1000), worker(1, 1000)};  // 10 s each
  EXPECT_FALSE(worst_wait_line(workers));
  workers[0].waits = {0, 0.09, 0.02};
  EXPECT_FALSE(worst_wait_line(workers)) << "less than a hundredth";
  workers[1].waits = {0.1, 0, 2.5};
  EXPECT_EQ(worst_wait_line(workers)->render(80, false),
            "longest wait  worker 1 for server 0: 2.5 s, 25 % of its time");
  workers[0].waits = {0, 3, 0};
  EXPECT_EQ(worst_wait_line(workers)->render(80, false),
            "longest wait  worker 0 for worker 1: 3.0 s, 30 % of its time");
}

TEST(ConsoleTextTest, StalenessIsAShareOfUpdates) {
  auto w = worker(3, 100);
  w.staleness = {1, 2, 0, 0, 1};
  EXPECT_EQ(staleness_line(w, 79).render(80, false), "     3  0: 25%  1: 50%  4-5: 25%");
  w.staleness.assign(21, 10);
  EXPECT_EQ(staleness_line(w, 30).render(80, false), "     3  0: 5%  1: 5%  2+: 90%") << "the last values are joined";
  EXPECT_EQ(staleness_line(w, 79).render(80, false), "     3  0: 5%  1: 5%  2: 5%  3: 5%  4-5: 5%  6-7: 4%  8+: 71%");
}

TEST(ConsoleTextTest, PercentagesAddUp) {
  EXPECT_EQ(percentages({1, 1, 1}), (std::vector<int>{34, 33, 33}));
  EXPECT_EQ(percentages({0, 0}), (std::vector<int>{0, 0}));
  EXPECT_EQ(percentages({0.92, 0.03, 0.04, 0.01}), (std::vector<int>{92, 3, 4, 1}));
}

TEST(ConsoleTextTest, ABarFillsItsLine) {
  const Position half{
      .epoch = 1, .epochs = 3, .fraction = 0.5, .images_per_s = 1000, .epoch_left_s = 10, .run_left_s = 50};
  EXPECT_EQ(bar_line(half, 100, false).render(200, false),
            "epoch 1/3  ===================-------------------   50 %  1,000 images/s  0:10 left, 0:50 to the end");
  EXPECT_EQ(bar_line(half, 100, true).columns(), 100u);
  EXPECT_EQ(bar_line(half, 10, false).render(19, false), "epoch 1/3  ====----");
  const Position all{.epoch = 1, .epochs = 3, .fraction = 1, .images_per_s = 1000};
  EXPECT_EQ(bar_line(all, 40, false).render(200, false), "epoch 1/3  ==========  100 %  evaluating");
}

TEST(ConsoleTextTest, AProgramThatTellsNoAccuracyHasItsLossAlone) {
  RunEnd end;
  end.summary.dataset = "numbers";
  end.summary.test_accuracy = std::numeric_limits<double>::quiet_NaN();
  end.summary.test_loss = 0.5;
  std::string all;
  for (const auto& line : closing_table(end, "", 80)) all += line.render(200, false) + "\n";
  EXPECT_NE(all.find("test loss 0.5000\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("accuracy"), std::string::npos) << all;

  experiment::EpochReport report;
  report.epoch = 1, report.epochs = 3, report.train_loss = 0.25, report.images_per_s = 100, report.test_loss = 0.5;
  report.test_accuracy = end.summary.test_accuracy;
  EXPECT_TRUE(epoch_line(report).render(200, false).starts_with("epoch 1/3  loss 0.2500, test 0.5000  100 images/s"));
}

}  // namespace
}  // namespace troupe::report
