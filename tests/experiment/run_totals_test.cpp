#include "experiment/run_totals.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "experiment/summary.hpp"

namespace troupe::experiment {
namespace {

/// A different number in every field. A new field must be named here.
WorkerProgress all_fields() {
  WorkerProgress progress;
  auto& [worker, steps, samples, loss, loss_sum, top1, recent_samples, compute_s, forward_s, backward_s, optimizer_s,
         exchange_s, wait_s, load_s, exchanges, dropped, skipped, refused, passed, replaced, bytes, staleness_sum,
         staleness_count, staleness_max, norm_sum, norm_max, recent_norm_sum, recent_steps, staleness, waits, done,
         loss_scale, traffic, given_up, distance] = progress;
  worker = 1;
  std::uint64_t next = 2;
  for (auto* count : {&steps, &samples, &recent_samples, &exchanges, &dropped, &skipped, &refused, &passed, &replaced,
                      &bytes, &staleness_sum, &staleness_count, &staleness_max, &recent_steps})
    *count = next++;
  top1 = static_cast<std::int64_t>(next++);
  for (auto* real : {&loss, &loss_sum, &compute_s, &forward_s, &backward_s, &optimizer_s, &exchange_s, &wait_s, &load_s,
                     &norm_sum, &norm_max, &recent_norm_sum, &loss_scale, &distance})
    *real = static_cast<double>(next++) + 0.5;
  staleness = {next++, next++};
  waits = {0.25, 0.75};
  traffic = {{Purpose::pull, 1, next++}, {Purpose::collective, 0, next++}};
  done = {next};
  given_up = {next + 1};
  return progress;
}

WorkerProgress worker(std::uint32_t rank) {
  WorkerProgress progress{.worker = rank, .steps = 10 + rank, .samples = 200, .compute_s = 1.5, .exchange_s = 0.5};
  progress.wait_s = 0.25;
  progress.load_s = 0.125;
  progress.exchanges = 4;
  progress.dropped = 3;
  progress.skipped = 2;
  progress.passed = 1;
  progress.replaced = 5;
  progress.bytes = 4096;
  progress.staleness_sum = 6;
  progress.staleness_count = 3;
  progress.staleness_max = 4;
  progress.staleness = {1, 1, 0, 0, 1};
  progress.waits = {0, 0.25};
  return progress;
}

void expect_equal(const WorkerProgress& a, const WorkerProgress& b) {
  EXPECT_EQ(a.worker, b.worker);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.compute_s, b.compute_s);
  EXPECT_EQ(a.exchange_s, b.exchange_s);
  EXPECT_EQ(a.wait_s, b.wait_s);
  EXPECT_EQ(a.load_s, b.load_s);
  EXPECT_EQ(a.exchanges, b.exchanges);
  EXPECT_EQ(a.dropped, b.dropped);
  EXPECT_EQ(a.skipped, b.skipped);
  EXPECT_EQ(a.passed, b.passed);
  EXPECT_EQ(a.replaced, b.replaced);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.staleness_sum, b.staleness_sum);
  EXPECT_EQ(a.staleness_count, b.staleness_count);
  EXPECT_EQ(a.staleness_max, b.staleness_max);
  EXPECT_EQ(a.staleness, b.staleness);
  EXPECT_EQ(a.waits, b.waits);
}

TEST(RunTotals, RoundTripAsText) {
  RunTotals totals{.worker_steps = {30, 31}, .steps = 61, .samples = 1220, .train_s = 1.25, .wall_s = 2.5};
  totals.center_version = 17;
  totals.epoch = {.loss = 12.5, .top1 = 7, .samples = 20, .began_s = 0.75, .closed = true, .last_loss = 0.1};
  totals.test = {.loss = 0.3, .accuracy = 0.9, .top5 = 0.99};
  totals.session = {.train_s = 0.5, .samples = 400, .workers = {worker(0), worker(1)}, .gone = worker(2)};
  const auto back = parse_totals(to_text(totals));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->worker_steps, totals.worker_steps);
  EXPECT_EQ(back->steps, 61U);
  EXPECT_EQ(back->samples, 1220U);
  EXPECT_EQ(back->train_s, 1.25);
  EXPECT_EQ(back->wall_s, 2.5);
  EXPECT_EQ(back->center_version, 17U);
  EXPECT_EQ(back->epoch.loss, 12.5);
  EXPECT_EQ(back->epoch.top1, 7U);
  EXPECT_EQ(back->epoch.samples, 20U);
  EXPECT_EQ(back->epoch.began_s, 0.75);
  EXPECT_TRUE(back->epoch.closed);
  EXPECT_EQ(back->epoch.last_loss, 0.1);
  EXPECT_EQ(back->test.loss, 0.3);
  EXPECT_EQ(back->test.accuracy, 0.9);
  EXPECT_EQ(back->test.top5, 0.99);
  EXPECT_EQ(back->session.train_s, 0.5);
  EXPECT_EQ(back->session.samples, 400U);
  ASSERT_EQ(back->session.workers.size(), 2U);
  expect_equal(back->session.workers[1], worker(1));
  expect_equal(back->session.gone, worker(2));
}

TEST(RunTotals, KeepWhatEvaluationsHaveLedTo) {
  RunTotals totals;
  totals.validation = {.loss = 0.5, .accuracy = 0.75, .top5 = 0.875};
  totals.watched = {.evaluations = 9, .since_best = 3, .since_fall = 1, .lr_factor = 0.25};
  totals.watched.best = {.loss = 0.4, .accuracy = 0.8};
  totals.watched.best_at = {.leases = 60, .epoch = 1.5, .train_s = 7};
  totals.watched.to_beat = {.loss = 0.45, .accuracy = 0.7};
  totals.watched.last_at = {.leases = 90, .epoch = 2.25, .train_s = 11};
  totals.watched.extra_at = {.leases = 95, .epoch = 2.5, .train_s = 12};
  const auto back = parse_totals(to_text(totals));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->validation.accuracy, 0.75);
  EXPECT_EQ(back->watched.evaluations, 9U);
  EXPECT_EQ(back->watched.since_best, 3U);
  EXPECT_EQ(back->watched.since_fall, 1U);
  EXPECT_EQ(back->watched.lr_factor, 0.25);
  EXPECT_EQ(back->watched.best.accuracy, 0.8);
  EXPECT_EQ(back->watched.best_at.leases, 60U);
  EXPECT_EQ(back->watched.to_beat.accuracy, 0.7);
  EXPECT_EQ(back->watched.last_at.epoch, 2.25);
  EXPECT_EQ(back->watched.extra_at.leases, 95U);
  EXPECT_TRUE(std::isnan(back->watched.target_s));
  totals.watched.target_s = 12;
  EXPECT_EQ(parse_totals(to_text(totals))->watched.target_s, 12);
  EXPECT_TRUE(std::isnan(parse_totals(to_text(totals))->watched.target_accuracy));
  totals.watched.target_accuracy = 0.75;
  totals.watched.target_loss = 0;
  EXPECT_EQ(parse_totals(to_text(totals))->watched.target_accuracy, 0.75);
  EXPECT_EQ(parse_totals(to_text(totals))->watched.target_loss, 0);
}

/// They did not tell evaluations where a run stops from the others.
TEST(RunTotals, EveryEvaluationOfAnOlderProgramCounts) {
  RunTotals totals;
  totals.watched = {.evaluations = 9, .best = {.loss = 0.4, .accuracy = 0.8}, .last_at = {.leases = 90}};
  auto json = nlohmann::json::parse(to_text(totals));
  for (const auto* key : {"to_beat_loss", "to_beat_accuracy", "extra_at"}) json["evaluations"].erase(key);
  const auto back = parse_totals(json.dump());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->watched.to_beat.loss, 0.4);
  EXPECT_EQ(back->watched.to_beat.accuracy, 0.8);
  EXPECT_EQ(back->watched.extra_at.leases, 0U);
}

TEST(RunTotals, KeepEverySumOfAWorker) {
  RunTotals totals;
  totals.session.workers = {all_fields()};
  const auto back = parse_totals(to_text(totals));
  ASSERT_TRUE(back) << back.error().message;
  auto kept = all_fields();  // except values since the last report
  kept.loss = kept.loss_sum = 0;
  kept.top1 = 0;
  kept.recent_samples = kept.recent_steps = 0;
  kept.recent_norm_sum = 0;
  kept.loss_scale = 1;
  kept.done.clear();
  kept.given_up.clear();
  kept.distance = kUnknown;
  EXPECT_EQ(back->session.workers, std::vector{kept});
}

TEST(RunTotals, UnknownValuesAreNotANumber) {
  const auto back = parse_totals(to_text(RunTotals{}));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(std::isnan(back->test.loss));
  EXPECT_TRUE(std::isnan(back->test.accuracy));
  EXPECT_EQ(back->test.top5, -1);
  EXPECT_FALSE(back->epoch.closed);
}

const char* const kVersion01 =
    R"({"worker_steps":[30,30],"steps":60,"samples":1200,"train_s":1.5,"wall_s":2.0,"center_version":3})";

TEST(RunTotals, TotalsOfVersion01HaveReportedTheirEpochs) {
  const auto totals = parse_totals(kVersion01);
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_TRUE(totals->epoch.closed);
  EXPECT_EQ(totals->epoch.began_s, 1.5) << "an epoch's rate is of what is known of it";
  EXPECT_TRUE(std::isnan(totals->test.accuracy));
  EXPECT_TRUE(totals->session.workers.empty());
}

TEST(RunTotals, TotalsOfVersion01AreCompletedFromTheSummary) {
  Summary summary;
  summary.train_loss = 0.7;
  summary.images_per_s = 800;
  summary.test_loss = 0.4;
  summary.test_accuracy = 0.85;
  summary.per_worker = {worker(0), worker(1)};
  auto totals = *parse_totals(kVersion01);
  complete(totals, to_json(summary));
  EXPECT_EQ(totals.epoch.last_loss, 0.7);
  EXPECT_EQ(totals.test.accuracy, 0.85);
  EXPECT_EQ(totals.test.top5, -1);
  EXPECT_EQ(totals.session.train_s, 400 / 800.0);
  ASSERT_EQ(totals.session.workers.size(), 2U);
  expect_equal(totals.session.workers[1], worker(1));

  for (const char* text : {"", "{", "{}", "[1]", R"({"per_worker":[{"worker":"x"}]})"}) {
    auto unknown = *parse_totals(kVersion01);
    complete(unknown, text);
    EXPECT_TRUE(unknown.session.workers.empty()) << text;
    EXPECT_TRUE(std::isnan(unknown.test.loss)) << text;
  }
}

TEST(RunTotals, OtherTextIsCorrupt) {
  for (const char* text : {"", "{}", "[]", R"({"worker_steps":3})"}) {
    const auto totals = parse_totals(text);
    ASSERT_FALSE(totals) << text;
    EXPECT_EQ(totals.error().code, core::Errc::corrupt);
  }
}

}  // namespace
}  // namespace troupe::experiment
