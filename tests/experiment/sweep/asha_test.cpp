#include "experiment/sweep/asha.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace troupe::sweep {
namespace {

constexpr double kDiverged = std::numeric_limits<double>::infinity();

TEST(Rungs, GrowByEtaAndEndWithTheWholeRun) {
  using Rungs = std::vector<std::int64_t>;
  EXPECT_EQ(rungs_of(9, 1, 3), (Rungs{1, 3, 9}));
  EXPECT_EQ(rungs_of(10, 1, 3), (Rungs{1, 3, 10}));
  EXPECT_EQ(rungs_of(5, 1, 2), (Rungs{1, 2, 5})) << "4 and 5 would be nearly the same";
  EXPECT_EQ(rungs_of(12, 3, 2), (Rungs{3, 6, 12}));
  EXPECT_EQ(rungs_of(2, 1, 3), (Rungs{2}));
  EXPECT_EQ(rungs_of(1, 1, 2), (Rungs{1}));
  EXPECT_EQ(rungs_of(8, 1, 1.5), (Rungs{1, 2, 3, 5, 8}))
      << "1, 1.5, 2.25, 3.375, 5.06; 7.6 leaves no room for another eta";
}

TEST(Asha, PromotesTheBestThirdAsSoonAsItIsKnown) {
  Asha asha(3, 3);
  asha.reached(0, 0, 0.5);
  asha.reached(1, 0, 0.2);
  EXPECT_FALSE(asha.candidate(false)) << "⌊2 / 3⌋ = 0";
  asha.reached(2, 0, 0.9);
  ASSERT_TRUE(asha.candidate(false));
  EXPECT_EQ(asha.candidate(false)->trial, 1U);
  EXPECT_EQ(asha.candidate(false)->rung, 0U);
  asha.promoted(1, 0);
  EXPECT_FALSE(asha.candidate(false));
  asha.reached(3, 0, 0.1);
  EXPECT_EQ(asha.candidate(false)->trial, 3U)
      << "the best of four now, though another was promoted before it was known";
}

TEST(Asha, HigherRungsComeFirst) {
  Asha asha(3, 2);
  for (std::size_t trial = 0; trial < 6; ++trial) asha.reached(trial, 0, 0.1 * static_cast<double>(trial));
  asha.promoted(0, 0);
  asha.promoted(1, 0);
  asha.reached(0, 1, 0.05);
  asha.reached(1, 1, 0.04);
  EXPECT_EQ(asha.candidate(false)->trial, 1U);
  EXPECT_EQ(asha.candidate(false)->rung, 1U);
  asha.promoted(1, 1);
  EXPECT_EQ(asha.candidate(false)->trial, 2U);
  EXPECT_EQ(asha.candidate(false)->rung, 0U);
}

TEST(Asha, ADivergedTrialAndOneThatHasEndedGoNoFurther) {
  Asha asha(2, 2);
  asha.reached(0, 0, kDiverged);
  asha.reached(1, 0, kDiverged);
  EXPECT_FALSE(asha.candidate(true));
  asha.reached(2, 0, 0.1, true);
  asha.reached(3, 0, 0.3);
  EXPECT_EQ(asha.candidate(false)->trial, 3U);
}

TEST(Asha, WithoutFurtherTrialsOneOfEachRungGoesOn) {
  Asha asha(3, 4);
  asha.reached(0, 0, 0.5);
  asha.reached(1, 0, 0.2);
  EXPECT_FALSE(asha.candidate(false));
  EXPECT_EQ(asha.candidate(true)->trial, 1U);
  asha.promoted(1, 0);
  EXPECT_FALSE(asha.candidate(true)) << "one, not all";
  asha.reached(1, 1, 0.1);
  EXPECT_EQ(asha.candidate(true)->rung, 1U);
}

TEST(Asha, BelowTheLowestRungNoTrialGoesOn) {
  Asha asha(3, 2);
  for (std::size_t trial = 0; trial < 4; ++trial) asha.reached(trial, 0, 0.1 * static_cast<double>(trial));
  EXPECT_EQ(asha.candidate(false, 0)->trial, 0U);
  EXPECT_FALSE(asha.candidate(true, 1)) << "none has reached rung 1";
  EXPECT_FALSE(asha.best_left(1));
  asha.promoted(3, 0);
  asha.reached(3, 1, 0.9);
  EXPECT_EQ(asha.candidate(true, 1)->trial, 3U);
  EXPECT_FALSE(asha.candidate(true, 2)) << "the last rung is a run's end";
}

/// 0, 1 and 2 have 0.1, 0.2, 0.3 after the first rung; 3 has diverged. One in four: ⌊4 / 4⌋ = 1 goes on.
TEST(Asha, TheBestThatIsLeftNeedNotBeAmongTheBestOfItsRung) {
  Asha asha(3, 4);
  for (std::size_t trial = 0; trial < 3; ++trial) asha.reached(trial, 0, 0.1 * static_cast<double>(trial + 1));
  asha.reached(3, 0, kDiverged);
  asha.promoted(0, 0);
  EXPECT_FALSE(asha.candidate(true));
  EXPECT_EQ(asha.best_left(0)->trial, 1U);
  asha.reached(0, 1, 0.7);
  EXPECT_EQ(asha.best_left(0)->trial, 0U) << "the highest rung first";
  asha.promoted(0, 1);
  asha.promoted(1, 0);
  asha.promoted(2, 0);
  EXPECT_FALSE(asha.best_left(0)) << "a diverged trial goes no further";
}

/// Whatever the order of results: a promoted trial is, at that moment, among the best ⌊n / eta⌋ of its rung, by counting those that are better.
RC_GTEST_PROP(Asha, OnlyTheBestFractionOfARungIsPromoted, ()) {
  const auto eta = *rc::gen::inRange(2, 5);
  const auto trials = *rc::gen::inRange<std::size_t>(1, 60);
  constexpr std::size_t kRungs = 3;
  Asha asha(kRungs, eta);
  std::vector<std::vector<double>> reached(kRungs);
  std::vector<std::pair<std::size_t, std::size_t>> running;  // trial, rung
  std::size_t begun = 0;
  while (begun < trials || !running.empty()) {
    if (const auto candidate = asha.candidate(false)) {
      const auto ranking = asha.ranking(candidate->rung);
      const auto own = std::ranges::find(ranking, candidate->trial, &std::pair<double, std::size_t>::second)->first;
      const auto better = std::ranges::count_if(reached[candidate->rung], [&](double loss) { return loss < own; });
      RC_ASSERT(better < static_cast<std::ptrdiff_t>(reached[candidate->rung].size()) / eta);
      asha.promoted(candidate->trial, candidate->rung);
      running.emplace_back(candidate->trial, candidate->rung + 1);
    } else if (begun < trials && *rc::gen::arbitrary<bool>()) {
      running.emplace_back(begun++, 0);
    } else if (!running.empty()) {
      const auto which = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, running.size()));
      const auto [trial, rung] = running[static_cast<std::size_t>(which)];
      running.erase(running.begin() + which);
      const double loss = *rc::gen::inRange(0, 1000);
      reached[rung].push_back(loss);
      asha.reached(trial, rung, loss);
    }
  }
  RC_ASSERT(reached[0].size() == trials);
}

}  // namespace
}  // namespace troupe::sweep
