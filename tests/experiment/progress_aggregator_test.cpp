#include "experiment/progress_aggregator.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

/// A report of `samples` since the last report, each with the same loss; the sums are `so_far`.
WorkerProgress report(std::uint32_t worker, std::uint64_t samples, double loss, std::uint64_t so_far) {
  WorkerProgress progress{.worker = worker, .steps = so_far / 10, .samples = so_far};
  progress.loss_sum = loss * static_cast<double>(samples);
  progress.top1 = samples / 2;
  progress.recent_samples = samples;
  progress.compute_s = 0.01 * static_cast<double>(so_far);
  progress.exchanges = so_far / 20;
  return progress;
}

// ---- newcomers

TEST(ProgressAggregator, NewcomersSumsContinueThoseOfTheLostWorker) {
  WorkerProgress earlier{.worker = 1, .steps = 90, .samples = 900, .compute_s = 9, .exchange_s = 0.5};
  earlier.wait_s = 2;
  earlier.load_s = 0.25;
  earlier.passed = 3;
  earlier.replaced = 2;
  earlier.staleness = {1, 2};
  earlier.waits = {1.5, 0, 0.5};
  WorkerProgress whole{.worker = 1, .steps = 10, .samples = 100, .compute_s = 1, .exchange_s = 0.5};
  whole.wait_s = 1;
  whole.replaced = 4;
  whole.load_s = 0.25;
  whole.recent_samples = 100;
  whole.staleness = {4, 0};
  whole.waits = {0, 0, 1};
  earlier.traffic = {{Purpose::push, 0, 100}, {Purpose::pull, 0, 50}};
  whole.traffic = {{Purpose::push, 0, 7}};
  add(whole, earlier);
  EXPECT_EQ(whole.traffic, (std::vector<Traffic>{{Purpose::push, 0, 107}, {Purpose::pull, 0, 50}}));
  EXPECT_EQ(whole.steps, 100U);
  EXPECT_EQ(whole.samples, 1000U);
  EXPECT_EQ(whole.passed, 3U);
  EXPECT_EQ(whole.replaced, 6U);
  EXPECT_EQ(whole.compute_s, 10);
  EXPECT_EQ(whole.exchange_s, 1);
  EXPECT_EQ(whole.wait_s, 3);
  EXPECT_EQ(whole.load_s, 0.5);
  EXPECT_EQ(whole.waits, (std::vector<double>{1.5, 0, 1.5}));
  EXPECT_EQ(whole.staleness, (std::vector<std::uint64_t>{5, 2}));
  EXPECT_EQ(whole.recent_samples, 100U) << "what is recent is the newcomer's";
  EXPECT_EQ(whole.compute_s / static_cast<double>(whole.steps), 0.1) << "a step takes as long as it took";
}

// ---- epochs

TEST(ProgressAggregator, AnEpochHasItsOwnRate) {
  ProgressAggregator aggregator(2, 1, {});
  aggregator.add(report(0, 600, 2, 600));
  aggregator.add(report(1, 600, 1, 600));
  const auto first = aggregator.close_epoch(12);
  EXPECT_EQ(first.loss, 1.5);
  EXPECT_EQ(first.accuracy, 0.5);
  EXPECT_EQ(first.samples, 1200U);
  EXPECT_EQ(first.images_per_s, 100);
  aggregator.add(report(0, 600, 0.5, 1200));
  aggregator.add(report(1, 600, 0.5, 1200));
  const auto second = aggregator.close_epoch(15);
  EXPECT_EQ(second.loss, 0.5);
  EXPECT_EQ(second.images_per_s, 400) << "not the session's mean";
}

TEST(ProgressAggregator, AnEpochThatASessionEndedInGoesOn) {
  ProgressAggregator before(1, 1, {});
  before.add(report(0, 1200, 3, 1200));
  (void)before.close_epoch(6);
  before.add(report(0, 400, 2, 1600));
  ProgressAggregator after(1, 1, before.totals(10, 11));
  EXPECT_FALSE(after.epoch_closed());
  after.add(report(0, 800, 1, 800));
  EXPECT_EQ(after.steps(), 240U);
  const auto means = after.close_epoch(18);
  EXPECT_EQ(means.samples, 1200U);
  EXPECT_DOUBLE_EQ(means.loss, (400 * 2 + 800 * 1) / 1200.0);
  EXPECT_EQ(means.images_per_s, 1200 / 12.0);
}

TEST(ProgressAggregator, AnEpochIsClosedUntilAnotherHasTrained) {
  ProgressAggregator aggregator(1, 1, {});
  EXPECT_FALSE(aggregator.epoch_closed());
  aggregator.add(report(0, 1200, 3, 1200));
  EXPECT_FALSE(aggregator.epoch_closed());
  (void)aggregator.close_epoch(6);
  EXPECT_TRUE(aggregator.epoch_closed());
  EXPECT_TRUE(ProgressAggregator(1, 1, aggregator.totals(6, 7)).epoch_closed());
  aggregator.add(report(0, 0, 0, 1200));  // an empty report
  EXPECT_TRUE(aggregator.epoch_closed());
  aggregator.add(report(0, 20, 1, 1220));
  EXPECT_FALSE(aggregator.epoch_closed());
}

// ---- earlier sessions

TEST(ProgressAggregator, ASessionThatTrainsNothingLeavesTheSummaryAsItWas) {
  ProgressAggregator trained(2, 1, {});
  trained.add(report(0, 600, 2, 600));
  trained.add(report(1, 600, 1, 600));
  (void)trained.close_epoch(12);
  Summary summary;
  trained.fill(summary, 12);
  EXPECT_EQ(summary.images_per_s, 100);
  EXPECT_EQ(summary.train_loss, 1.5);
  EXPECT_EQ(summary.exchange_count, 60U);

  // A session in between that knows no details: they are not lost with it.
  const ProgressAggregator idle(2, 1, trained.totals(12, 14));
  const ProgressAggregator resumed(2, 1, idle.totals(12, 15));
  Summary again;
  resumed.fill(again, 12);
  EXPECT_EQ(again.steps, summary.steps);
  EXPECT_EQ(again.samples, summary.samples);
  EXPECT_EQ(again.images_per_s, summary.images_per_s);
  EXPECT_EQ(again.train_loss, summary.train_loss);
  EXPECT_EQ(again.exchange_count, summary.exchange_count);
  ASSERT_EQ(again.per_worker.size(), 2U);
  EXPECT_EQ(again.per_worker[1].compute_s, summary.per_worker[1].compute_s);
}

// Samples and times must be of the same part of the run: all of it. 600 samples in 12 s, then 300 in 1 s.
TEST(ProgressAggregator, SummaryOfAResumedRunCoversItsWholeLife) {
  ProgressAggregator trained(1, 1, {});
  trained.add(report(0, 600, 2, 600));
  (void)trained.close_epoch(12);
  ProgressAggregator resumed(1, 1, trained.totals(12, 14));
  resumed.add(report(0, 300, 1, 300));
  ProgressAggregator again(1, 1, resumed.totals(13, 16));
  Summary summary;
  again.fill(summary, 13);
  EXPECT_EQ(summary.samples, 900U);
  EXPECT_DOUBLE_EQ(summary.images_per_s, 900 / 13.0);
  EXPECT_EQ(summary.per_worker[0].samples, 900U);
  EXPECT_EQ(summary.per_worker[0].steps, 90U);
  EXPECT_DOUBLE_EQ(summary.per_worker[0].compute_s, 9);
  EXPECT_EQ(summary.exchange_count, 45U);
  EXPECT_EQ(summary.train_loss, 1);
}

// Columns of waits: workers, then servers.
TEST(ProgressAggregator, WaitsStayWithTheirCauseWhenTheNumberOfWorkersChanges) {
  ProgressAggregator two(2, 1, {});
  auto row = report(0, 20, 1, 20);
  row.waits = {0, 3, 5};
  two.add(row);
  ProgressAggregator three(3, 1, two.totals(1, 1));
  row = report(0, 20, 1, 20);
  row.waits = {0, 1, 2, 4};
  three.add(row);
  EXPECT_EQ(three.life(2).workers[0].waits, (std::vector<double>{0, 4, 2, 9}));
  ProgressAggregator one(1, 1, two.totals(1, 1));
  row = report(0, 20, 1, 20);
  row.waits = {0, 1};
  one.add(row);
  EXPECT_EQ(one.life(2).workers[0].waits, (std::vector<double>{0, 6}));
  EXPECT_EQ(one.life(2).samples, 40U);
}

TEST(ProgressAggregator, WaitsForServersThatAreGoneAreThoseOfTheLast) {
  ProgressAggregator three(1, 3, {});
  auto row = report(0, 20, 1, 20);
  row.waits = {0, 1, 2, 4};
  three.add(row);
  ProgressAggregator two(1, 2, three.totals(1, 1));
  row.waits = {0, 10, 20};
  two.add(row);
  EXPECT_EQ(two.life(2).workers[0].waits, (std::vector<double>{0, 11, 26}));
  ProgressAggregator none(1, 0, three.totals(1, 1));
  EXPECT_EQ(none.life(1).workers[0].waits, (std::vector<double>{0}));
}

TEST(ProgressAggregator, RowsFitASessionThatTrainsNothing) {
  ProgressAggregator one(1, 1, {});
  auto row = report(0, 20, 1, 20);
  row.waits = {0, 5};
  row.staleness = {1, 0, 2};
  one.add(row);
  const auto before = one.totals(1, 1);
  ProgressAggregator more(3, 2, before);
  more.add({.worker = 2, .wait_s = 7, .waits = {7, 0, 0, 0, 0}});  // for a batch that never came
  const auto life = more.life(9);
  ASSERT_EQ(life.workers.size(), 3U);
  EXPECT_EQ(life.workers[0].waits, (std::vector<double>{0, 0, 0, 5, 0}));
  EXPECT_EQ(life.workers[0].samples, 20U);
  for (const auto rank : {1U, 2U}) {
    EXPECT_EQ(life.workers[rank].worker, rank);
    EXPECT_EQ(life.workers[rank].waits, std::vector<double>(5, 0));
    EXPECT_EQ(life.workers[rank].staleness, (std::vector<std::uint64_t>{0, 0, 0}));
    EXPECT_EQ(life.workers[rank].wait_s, 0);
  }
  EXPECT_EQ(life.train_s, before.session.train_s);
}

TEST(ProgressAggregator, SumsOfWorkersThatAreGoneStayThoseOfTheRun) {
  ProgressAggregator two(2, 1, {});
  for (const auto rank : {0U, 1U}) {
    auto row = report(rank, 100, 1, 100);
    row.bytes = 1000;
    row.refused = 1;
    row.dropped = 2;
    row.skipped = 3;
    row.staleness_sum = 8 * rank;
    row.staleness_count = 2;
    row.staleness_max = 6 * rank;
    two.add(row);
  }
  Summary before;
  two.fill(before, 1);
  ProgressAggregator one(1, 1, two.totals(1, 1));
  Summary idle;
  one.fill(idle, 1);
  EXPECT_EQ(idle.per_worker.size(), 1U);
  EXPECT_EQ(idle.exchange_count, before.exchange_count);
  one.add(report(0, 100, 1, 100));
  // Over one more session, in which the rank is there again.
  const ProgressAggregator again(2, 1, one.totals(2, 2));
  Summary after;
  again.fill(after, 2);
  ASSERT_EQ(after.per_worker.size(), 2U);
  EXPECT_EQ(after.per_worker[1].exchanges, 0U) << "another worker";
  EXPECT_EQ(after.exchange_count, 15U);
  EXPECT_EQ(after.exchange_bytes, 2000U);
  EXPECT_EQ(after.refused, 2U);
  EXPECT_EQ(after.exchange_dropped, 4U);
  EXPECT_EQ(after.exchange_skipped, 6U);
  EXPECT_EQ(after.staleness_max, 6U);
  EXPECT_EQ(after.staleness_mean, 2);
}

}  // namespace
}  // namespace troupe::experiment
