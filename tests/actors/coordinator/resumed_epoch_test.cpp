// A coordinator that resumes exactly at the end of an epoch.
#include <gtest/gtest.h>

#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

/// Resumes one worker's run after the first of `epochs`, with these totals of the earlier session. Returns its report of that epoch.
std::optional<EpochReport> report_of_resumed(const experiment::EpochTotals& known, const char* epochs) {
  LoneCoordinator coordinator(
      {"cluster.workers=1", "strategy.name=easgd", "data.train_samples=60", std::string("run.epochs=") + epochs});
  coordinator.begin([&](CoordinatorSetup& setup) {
    setup.resumed = true;
    setup.before.train_s = 3;
    setup.before.steps = 3;
    setup.before.samples = 60;
    setup.before.epoch = known;
    while (const auto lease = setup.leases->grant(0)) setup.leases->done(0, lease->index);
    ASSERT_TRUE(setup.leases->epoch_done());
  });
  std::optional<EpochReport> reported;
  for (int k = 0; k < 5; ++k) {
    coordinator.answered(*coordinator.workers[0], [](const Dismissal&) { return Dismissed{}; });
    coordinator.take_snapshots();
    coordinator.answered(coordinator.evaluator, [](const EvaluateOrder&, const BorrowedView&, const BorrowedView&) {
      return Evaluated{.test = {.loss = 0.5, .top1 = 9, .samples = 10}};
    });
    LoneCoordinator::heard(coordinator.recorder, [&](const EpochReport& report) { reported = report; });
    if (auto writing = coordinator.order_to_write()) coordinator.write(writing);
  }
  return reported;
}

TEST(ResumedEpoch, ReportedEpochIsNotReportedAgain) {
  for (const char* epochs : {"1", "9"})
    EXPECT_FALSE(report_of_resumed({.began_s = 3, .closed = true, .last_loss = 2}, epochs)) << epochs;
}

// The emergency checkpoint of a lost member was saved at the epoch's last step: the epoch has not been evaluated or reported yet.
TEST(ResumedEpoch, UnreportedEpochIsReportedAsItWas) {
  for (const char* epochs : {"1", "9"}) {
    const auto report = report_of_resumed({.loss = 90, .top1 = 30, .samples = 60, .began_s = 1}, epochs);
    ASSERT_TRUE(report) << epochs;
    EXPECT_EQ(report->epoch, 1U);
    EXPECT_EQ(report->train_loss, 1.5);
    EXPECT_EQ(report->train_accuracy, 0.5);
    EXPECT_EQ(report->images_per_s, 30);
    EXPECT_EQ(report->test_accuracy, 0.9);
  }
}

// What the terminal multiplies the schedule's rate by: from the resume on, and from a fall on.
TEST(ResumedEpoch, TheFactorOfThePlateauIsTold) {
  LoneCoordinator coordinator({"cluster.workers=1", "strategy.name=easgd", "data.train_samples=80", "run.epochs=9",
                               "data.validation=\"20\"", "train.lr_policy=plateau", "train.lr_patience=1",
                               "train.lr_gamma=0.1"});
  coordinator.begin([&](CoordinatorSetup& setup) {
    setup.resumed = true;
    setup.before.steps = 3;
    setup.before.samples = 60;
    setup.before.watched = {
        .evaluations = 1, .lr_factor = 0.5, .best = {0.1, 0.99}, .to_beat = {0.1, 0.99}, .last_at = {.leases = 1}};
    setup.leases->set_lr_factor(0.5);
    while (const auto lease = setup.leases->grant(0)) setup.leases->done(0, lease->index);
  });
  double began = 0, fallen = 0;
  LoneCoordinator::heard(coordinator.recorder, [&](const RunStarted& run) { began = run.lr_factor; });
  coordinator.take_snapshots();
  coordinator.answered(coordinator.evaluator, [](const EvaluateOrder&, const BorrowedView&, const BorrowedView&) {
    const SplitScore bad{.loss = 0.5, .top1 = 1, .samples = 10};
    return Evaluated{.validation = bad, .test = bad};
  });
  LoneCoordinator::heard(coordinator.recorder, [&](const EvaluationReport& report) { fallen = report.lr_factor; });
  EXPECT_EQ(began, 0.5);
  EXPECT_DOUBLE_EQ(fallen, 0.05);
}

}  // namespace
}  // namespace troupe::actors
