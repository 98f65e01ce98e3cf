#include "experiment/sweep/search.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/experiment/sweep/searches.hpp"

namespace troupe::sweep {
namespace {

TEST(Search, EndsWithTheExpectedNumberOfRunsOnEachRung) {
  Search search(conditional_space(), asha_options(27));
  std::vector<int> runs(3);
  while (const auto step = search.next()) {
    ++runs[step->rung];
    search.ended(*step, result_of(search, *step));
  }
  EXPECT_TRUE(search.finished());
  EXPECT_EQ(runs[0], 27);
  EXPECT_GE(runs[1], 9);  // ⌊27 / 3⌋, and those that were among the best when fewer were known
  EXPECT_LE(runs[1], 15);
  EXPECT_GE(runs[2], 3);
  EXPECT_LE(runs[2], 9);
  const auto best = search.ranking().front();
  EXPECT_EQ(search.trials()[best].scores.size(), 3U);
  EXPECT_GT(accuracy(search.trials()[best].point, 9), 0.95);
}

TEST(Search, WithoutRungsEveryTrialIsTrainedToItsEnd) {
  SearchOptions options;
  options.trials = 4;
  Search search(conditional_space(), options);
  std::set<std::size_t> trials;
  while (const auto step = search.next()) {
    EXPECT_EQ(step->rung, 0U);
    trials.insert(step->trial);
  }
  EXPECT_EQ(trials.size(), 4U);
  EXPECT_FALSE(search.finished()) << "their results are still to come";
  for (std::size_t trial = 0; trial < 4; ++trial) search.ended({trial, 0}, {.score = 0.5});
  EXPECT_TRUE(search.finished());
}

TEST(Search, EvenOneOfVeryFewTrialsIsTrainedToItsEnd) {
  Search search(conditional_space(), asha_options(2));
  std::size_t highest = 0;
  while (const auto step = search.next()) {
    highest = std::max(highest, step->rung);
    search.ended(*step, {.score = 0.5});
  }
  EXPECT_EQ(highest, 2U);
}

TEST(Search, AFiniteSpaceEndsWithItsPoints) {
  Search search(Space({integer("a", 1, 3), choice("b", {"1", "2"})}), {});
  std::set<Point> points;
  while (const auto step = search.next()) {
    points.insert(search.trials()[step->trial].point);
    search.ended(*step, {.score = 0});
  }
  EXPECT_EQ(points.size(), 6U);
  EXPECT_TRUE(search.finished());
}

TEST(Search, AFailedTrialCountsForNothingButIsNotTriedAgain) {
  Search search(Space({integer("a", 1, 4)}), {});
  const auto first = search.next();
  search.failed(*first);
  EXPECT_TRUE(search.ranking().empty());
  std::set<Point> others;
  while (const auto step = search.next()) {
    others.insert(search.trials()[step->trial].point);
    search.ended(*step, {.score = 0});
  }
  EXPECT_EQ(others.size(), 3U);
  EXPECT_FALSE(others.contains(search.trials()[0].point));
}

TEST(Search, LowerScoresAreBetterIfTheGoalSaysSo) {
  for (const bool higher : {true, false}) {
    auto options = asha_options(3);
    options.higher_is_better = higher;
    Search search(conditional_space(), options);
    for (std::size_t trial = 0; trial < 3; ++trial) search.ended(*search.next(), {.score = static_cast<double>(trial)});
    EXPECT_EQ(search.next(), (Step{higher ? 2U : 0U, 1}));
  }
}

TEST(Search, RefusesARecordThatDoesNotFollow) {
  Search search(conditional_space(), asha_options(9));
  const Point point{0.1, 0.0, std::nullopt};
  EXPECT_FALSE(search.begin({1, 0}, point)) << "trial 0 comes first";
  EXPECT_FALSE(search.begin({0, 1}, point)) << "it has not begun";
  EXPECT_FALSE(search.begin({0, 0}, {5.0, 0.0, std::nullopt})) << "out of range";
  ASSERT_TRUE(search.begin({0, 0}, point));
  EXPECT_FALSE(search.begin({0, 1}, point)) << "it is under way";
  search.ended({0, 0}, {.score = 0.5});
  EXPECT_FALSE(search.begin({0, 2}, point)) << "rung 1 comes first";
  EXPECT_FALSE(search.begin({0, 3}, point));
  EXPECT_TRUE(search.begin({0, 1}, point));
  search.ended({0, 1}, {.score = std::nullopt});
  EXPECT_FALSE(search.begin({0, 2}, point)) << "it has diverged";
}

using Steps = std::vector<Step>;

/// One run at a time, each with this score; the steps.
Steps steps_of(Search& search, double score = 0.5) {
  Steps steps;
  while (const auto step = search.next()) {
    steps.push_back(*step);
    search.ended(*step, {.score = score});
  }
  return steps;
}

/// 12 epochs, runs of 9 that are compared after 1 and 3. Three trials begin: 11, 10 and 9 epochs are left after them. The best third, which is
/// trial 0, goes on to 3: 7 are left, which are too few for a fourth trial, or for a second one to its end. Trial 0 takes 6 of them.
TEST(Search, ABudgetOfEpochsSufficesForTheEndOfTheBestTrial) {
  auto options = asha_options(0);
  options.epochs = 12;
  Search search(conditional_space(), options);
  EXPECT_EQ(steps_of(search), (Steps{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {0, 2}}));
  EXPECT_EQ(search.epochs(), 11);
  EXPECT_TRUE(search.finished());
}

/// All but trial 10 diverge at once. Ten epochs are gone when it begins, and those after it leave enough for its end.
TEST(Search, NoBudgetIsReservedForADivergedTrial) {
  auto options = asha_options(0);
  options.epochs = 25;
  Search search(conditional_space(), options);
  std::int64_t whole = 0;
  while (const auto step = search.next()) {
    whole += step->rung == 2;
    search.ended(*step, {.score = step->trial == 10 ? std::optional(0.5) : std::nullopt});
  }
  EXPECT_EQ(whole, 1);
  EXPECT_EQ(search.trials()[10].scores.size(), 3U);
  EXPECT_LE(search.epochs(), 25);
}

/// Runs of 9 epochs, each but the last one's gone after a quarter of an epoch: 13 epochs suffice for 16 of them and one to its end.
TEST(Search, ADivergedTrialCountsWithWhatItHasTrained) {
  auto options = asha_options(0);
  options.epochs = 13;
  options.finish = 0;
  Search search(conditional_space(), options);
  for (std::size_t trial = 0; trial < 16; ++trial) {
    ASSERT_EQ(search.next(), (Step{trial, 0}));
    EXPECT_EQ(search.epochs(), 0.25 * static_cast<double>(trial) + 1);
    search.ended({trial, 0}, {.score = std::nullopt, .diverged_after = 0.25});
  }
  EXPECT_EQ(steps_of(search), (Steps{{16, 0}, {16, 1}, {16, 2}}));
  EXPECT_EQ(search.epochs(), 13);
}

/// In their first steps, as with a data set that cannot be learned.
TEST(Search, ABudgetOfEpochsEndsWhereAllTrialsDivergeAtOnce) {
  auto options = asha_options(0);
  options.epochs = 20;
  Search search(conditional_space(), options);
  std::size_t begun = 0;
  for (; begun < 1000; ++begun) {
    const auto step = search.next();
    if (!step) break;
    search.ended(*step, {.score = std::nullopt, .diverged_after = 0});
  }
  EXPECT_NEAR(static_cast<double>(begun), 220, 1) << "a twentieth of an epoch each, until 9 epochs are no longer left";
  EXPECT_TRUE(search.finished());
}

/// More or less than the step's own epochs is no number of this step.
TEST(Search, WhatADivergedTrialHasTrainedIsWithinItsStep) {
  for (const auto& [told, counted] : {std::pair(0.5, 1.1), {2.5, 2.5}, {30.0, 3.0}}) {
    Search search(conditional_space(), asha_options(1));
    search.ended(*search.next(), {.score = 0.5});
    ASSERT_EQ(search.next(), (Step{0, 1}));
    search.ended({0, 1}, {.score = std::nullopt, .diverged_after = told});
    EXPECT_EQ(search.epochs(), counted);
  }
}

/// One in four of a rung goes on while trials begin: trial 0 of six. What is left then is enough for the end of one more.
TEST(Search, TheRestOfABudgetFinishesTheBestTrialsThatFit) {
  auto options = asha_options(0);
  options.rungs = {2, 10};
  options.eta = 4;
  options.epochs = 29;
  Search search(conditional_space(), options);
  // 2 each: 27, 25, 23, 21 are left; the best of four takes 8: 13; one more: 11; another: 9. Then a trial to its end: 1.
  EXPECT_EQ(steps_of(search), (Steps{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 1}, {4, 0}, {5, 0}, {1, 1}}));
  EXPECT_EQ(search.epochs(), 28);
}

/// Two places, 48 epochs. In the last quarter trials go on although none is better: no place waits for the other one's result.
TEST(Search, InTheLastQuarterOfABudgetTheBestTrialsGoToTheirEndsInAllPlaces) {
  auto options = asha_options(0);
  options.rungs = {2, 10};
  options.eta = 100;  // without a budget none would go on
  options.epochs = 48;
  Search search(conditional_space(), options);
  for (std::size_t trial = 0; trial < 18; ++trial) {  // 36 of 48
    const auto step = search.next();
    ASSERT_EQ(step, (Step{trial, 0}));
    search.ended(*step, {.score = static_cast<double>(trial)});
  }
  EXPECT_EQ(search.next(), (Step{17, 1}));
  EXPECT_FALSE(search.next()) << "4 are left, and 8 would be needed";
  options.finish = 0.5;
  options.epochs = 64;
  Search other(conditional_space(), options);
  for (std::size_t trial = 0; trial < 16; ++trial) other.ended(*other.next(), {.score = static_cast<double>(trial)});
  EXPECT_EQ(other.next(), (Step{15, 1}));
  EXPECT_EQ(other.next(), (Step{14, 1})) << "while 15 trains";
}

TEST(Search, WithAGreaterBudgetItGoesOnAndWithASmallerOneNothingBegins) {
  auto options = asha_options(0);
  options.epochs = 12;
  Search first(conditional_space(), options);
  const auto steps = steps_of(first);
  for (const std::int64_t budget : {9, 11, 19, 40}) {
    options.epochs = budget;
    Search search(conditional_space(), options);
    for (const auto& step : steps) {
      ASSERT_TRUE(search.begin(step, first.trials()[step.trial].point)) << "what was recorded holds under any budget";
      search.ended(step, {.score = 0.5});
    }
    const auto more = steps_of(search);
    EXPECT_EQ(more.empty(), budget < 19) << budget;
    EXPECT_LE(search.epochs(), std::max<std::int64_t>(budget, 11));
    EXPECT_TRUE(search.finished());
  }
}

/// Two runs of 9 epochs are all: of 100 epochs 82 stay.
TEST(Search, TheNumberOfRunsEndsASweepWhoseBudgetHasMore) {
  auto options = asha_options(2);
  options.epochs = 100;
  Search search(conditional_space(), options);
  EXPECT_EQ(steps_of(search), (Steps{{0, 0}, {1, 0}, {0, 1}, {0, 2}}));
  EXPECT_TRUE(search.finished());
}

}  // namespace
}  // namespace troupe::sweep
