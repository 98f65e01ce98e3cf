#include "sim/step_time_model.hpp"

#include <chrono>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace troupe::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class StepTimesTest : public ::testing::Test {
 protected:
  StepTimesTest() {
    run.workers = 4;
    run.leases.batches = {10, 10, 10, 20};
    cluster.kinds = {{.name = "a", .steps = {{.mean_ns = 3e6}}}};
    cluster.workers.assign(4, {});
  }
  [[nodiscard]] Duration time(std::uint32_t worker, strategies::Step step = 0, Duration now = Duration{0}) const {
    return StepTimeModel(run, cluster).time(worker, step, now);
  }
  SimulatedRun run;
  Cluster cluster;
};

TEST_F(StepTimesTest, SlowdownsMultiply) {
  EXPECT_EQ(time(0), milliseconds(3));
  cluster.kinds[0].slowdown = 2;
  run.slowdown = {1, 1.5, 1, 1};
  EXPECT_EQ(time(0), milliseconds(6));
  EXPECT_EQ(time(1), milliseconds(9));
  EXPECT_DOUBLE_EQ(StepTimeModel(run, cluster).expected_s(1), 0.009);
  run.synthetic_step = milliseconds(5);  // the minimum, before slowdown
  EXPECT_EQ(time(1), milliseconds(15));
}

TEST_F(StepTimesTest, AStepOfASampleTimeGrowsWithTheBatch) {
  cluster.kinds[0].steps = {{.mean_ns = 1e5, .per_image = true}};
  EXPECT_EQ(time(0), milliseconds(1));
  EXPECT_EQ(time(3), milliseconds(2));
}

// A profile is of one micro-batch: a step draws a time for each.
TEST_F(StepTimesTest, StepOfMicroBatchesIsASumOfDraws) {
  cluster.kinds[0].steps = {{.measured_ns = {2e6}, .draws = 3}};
  EXPECT_EQ(time(0), milliseconds(6));
  EXPECT_DOUBLE_EQ(StepTimeModel(run, cluster).expected_s(0), 0.006);
}

// Mean and standard deviation of the logarithm over 40,000 steps; their standard errors are 0.0002 and 0.0001.
TEST_F(StepTimesTest, LogNormalTimesHaveTheirMean) {
  cluster.kinds[0].steps[0].sigma = 0.3;
  const StepTimeModel model(run, cluster);
  double sum = 0, logs = 0, squares = 0;
  constexpr int kSteps = 40'000;
  for (int step = 0; step < kSteps; ++step) {
    const double ms = core::seconds(model.time(0, static_cast<strategies::Step>(step), {})) * 1e3;
    sum += ms;
    logs += std::log(ms);
    squares += std::log(ms) * std::log(ms);
  }
  EXPECT_NEAR(sum / kSteps, 3, 0.02);
  EXPECT_NEAR(logs / kSteps, std::log(3) - 0.045, 0.006);
  EXPECT_NEAR(std::sqrt(squares / kSteps - logs * logs / kSteps / kSteps), 0.3, 0.005);
  EXPECT_NE(time(0, 1), time(1, 1));
  EXPECT_EQ(time(0, 1), time(0, 1));
}

TEST_F(StepTimesTest, MeasuredTimesAreAllDrawn) {
  cluster.kinds[0].steps[0] = {.measured_ns = {1e6, 2e6, 4e6}};
  std::set<Duration> seen;
  for (strategies::Step step = 0; step < 100; ++step) seen.insert(time(0, step));
  EXPECT_EQ(seen, (std::set<Duration>{milliseconds(1), milliseconds(2), milliseconds(4)}));
  EXPECT_NEAR(StepTimeModel(run, cluster).expected_s(0), 7e-3 / 3, 1e-15);
}

TEST_F(StepTimesTest, WorkersOfARecordedRunKeepTheirOwn) {
  cluster.kinds[0].steps = {{.mean_ns = 1e6}, {.mean_ns = 2e6}};
  EXPECT_EQ(time(0), milliseconds(1));
  EXPECT_EQ(time(1), milliseconds(2));
  EXPECT_EQ(time(2), milliseconds(1));
}

TEST_F(StepTimesTest, ASpellHoldsForStepsThatBeginInIt) {
  cluster.spells = {{.from = seconds(1), .to = seconds(2), .factor = 4, .workers = {1}},
                    {.from = seconds(0), .to = Duration::max(), .factor = 2}};
  EXPECT_EQ(time(1, 0, seconds(1) - microseconds(1)), milliseconds(6));
  EXPECT_EQ(time(1, 0, seconds(1)), milliseconds(24));
  EXPECT_EQ(time(0, 0, seconds(1)), milliseconds(6));
  EXPECT_EQ(time(1, 0, seconds(2)), milliseconds(6));
}

// 0.1 of 10,000 steps: 1,000 ± 30.
TEST_F(StepTimesTest, StragglersComeAsOftenAsTheyShould) {
  cluster.stragglers = {.probability = 0.1, .factor = 10};
  int slow = 0;
  for (strategies::Step step = 0; step < 10'000; ++step) slow += time(0, step) == milliseconds(30) ? 1 : 0;
  EXPECT_NEAR(slow, 1000, 120);
}

}  // namespace
}  // namespace troupe::sim
