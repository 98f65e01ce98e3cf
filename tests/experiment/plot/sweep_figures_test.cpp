#include "experiment/plot/sweep_figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

/// lr from 0.01 to 1 over logarithms and a choice of two; trial 1 was trained to its end, trial 2 diverged.
sweep::Record small_sweep() {
  sweep::Record record;
  record.metric = "test.accuracy";
  record.rungs = {1, 3};
  record.parameters = {
      {.key = "train.lr", .kind = sweep::Kind::real, .low = 0.01, .high = 1, .log = true},
      {.key = "strategy.name", .kind = sweep::Kind::choice, .choices = {"\"bsp\"", "\"easgd\""}},
      {.key = "strategy.tau", .kind = sweep::Kind::integer, .low = 1, .high = 4, .depends_on = 1, .when = {1}}};
  record.trials = {
      {.trial = 0, .settings = {{"train.lr", "0.1"}, {"strategy.name", "\"bsp\""}}, .scores = {0.5}, .scored_s = {1}},
      {.trial = 1,
       .settings = {{"train.lr", "1"}, {"strategy.name", "\"easgd\""}, {"strategy.tau", "4"}},
       .scores = {0.75, 0.9},
       .scored_s = {2, 4}},
      {.trial = 2, .settings = {{"train.lr", "0.5"}}, .scores = {std::nullopt}, .scored_s = {3}}};
  record.ranking = {1, 0, 2};
  return record;
}

const Figure* find(const std::vector<Figure>& figures, std::string_view name) {
  for (const auto& figure : figures)
    if (figure.name == name) return &figure;
  return nullptr;
}

/// u(0.1) = log 10 / log 100 = 0.5; bsp is the lower half's middle; tau = 4 of the cells [0, 1/4] … is at 3.5 / 4; scores from 50 to 90.
TEST(SweepFigures, LinesCrossTheAxesAtTheirValues) {
  const auto figures = sweep_figures(small_sweep(), "s");
  const auto* parallel = find(figures, "parallel");
  ASSERT_NE(parallel, nullptr);
  EXPECT_EQ(parallel->data.at("parallel-stopped.dat"), "0 0.5 50\n1 0.25 50\n2 -0.09 50\n3 0 50\n\n");
  EXPECT_EQ(parallel->data.at("parallel-whole.dat"), "0 1 90\n1 0.75 90\n2 0.875 90\n3 1 90\n\n");
  EXPECT_THAT(parallel->script, HasSubstr("2 trials"));
  EXPECT_THAT(parallel->script, HasSubstr("'strategy.tau'"));
  EXPECT_THAT(parallel->script, HasSubstr("'easgd'"));
}

/// tau = 1 of the cells [0, 1/4] … is at 0.5 / 4, tau = 4 at 3.5 / 4.
TEST(SweepFigures, TheEndsOfAnAxisAreLabelledWhereTheirLinesCrossIt) {
  const auto figures = sweep_figures(small_sweep(), "s");
  const auto* parallel = find(figures, "parallel");
  ASSERT_NE(parallel, nullptr);
  EXPECT_THAT(parallel->script, HasSubstr("set label '1' at 2,0.125 "));
  EXPECT_THAT(parallel->script, HasSubstr("set label '4' at 2,0.875 "));
  EXPECT_THAT(parallel->script, HasSubstr("set label '0.01' at 0,0 "));
  EXPECT_THAT(parallel->script, HasSubstr("set label '1' at 0,1 "));
}

/// A key with a range for each strategy has an axis for each; a line crosses that of its own strategy.
TEST(SweepFigures, ALinePassesBelowTheAxesOfOtherStrategies) {
  auto record = small_sweep();
  record.parameters[2] = {
      .key = "train.momentum", .kind = sweep::Kind::real, .low = 0, .high = 1, .depends_on = 1, .when = {0}};
  record.parameters.push_back(record.parameters[2]);
  record.parameters[3].when = {1};
  record.trials[0].settings.emplace_back("train.momentum", "0.5");
  record.trials[1].settings[2] = {"train.momentum", "0.25"};
  const auto figures = sweep_figures(record, "s");
  const auto* parallel = find(figures, "parallel");
  ASSERT_NE(parallel, nullptr);
  EXPECT_EQ(parallel->data.at("parallel-stopped.dat"), "0 0.5 50\n1 0.25 50\n2 0.5 50\n3 -0.09 50\n4 0 50\n\n");
  EXPECT_EQ(parallel->data.at("parallel-whole.dat"), "0 1 90\n1 0.75 90\n2 -0.09 90\n3 0.25 90\n4 1 90\n\n");
}

/// Epochs: trial 0 one, trial 1 one, trial 2 one, and two more of trial 1.
TEST(SweepFigures, TheBestSoFarIsOverTheEpochsTrained) {
  const auto figures = sweep_figures(small_sweep(), "s");
  const auto* best = find(figures, "best");
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->data.at("best.dat"), "1 50\n2 75\n3 75\n5 90\n");
  EXPECT_EQ(best->data.at("best-scores.dat"), "1 50 0\n2 75 0\n5 90 1\n");
  EXPECT_THAT(best->script, HasSubstr("set bmargin at screen")) << "the legend is below the axis' title";
  EXPECT_THAT(best->script, Not(HasSubstr("set key outside")));
}

TEST(SweepFigures, APictureWithoutNumbersIsLeftOut) {
  auto record = small_sweep();
  EXPECT_EQ(find(sweep_figures(record, "s"), "importance"), nullptr);
  record.importance = {0.7, 0.2, 0.1};
  const auto figures = sweep_figures(record, "s");
  const auto* importance = find(figures, "importance");
  ASSERT_NE(importance, nullptr);
  EXPECT_THAT(importance->data.at("importance.dat"), HasSubstr("0 70 0"));
  record.trials.clear();
  record.ranking.clear();
  record.importance.clear();
  EXPECT_TRUE(sweep_figures(record, "s").empty());
}

}  // namespace
}  // namespace troupe::plot
