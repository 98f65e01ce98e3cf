#include "experiment/sweep/search.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/experiment/sweep/spaces.hpp"

namespace troupe::sweep {
namespace {

SearchOptions asha_options(std::size_t trials) {
  SearchOptions options;
  options.rungs = {1, 3, 9};
  options.trials = trials;
  options.tpe.start = 5;
  return options;
}

/// An accuracy that grows with the epochs, and is greatest at lr = 0.05.
double accuracy(const Point& point, std::int64_t epochs) {
  return 1 - std::pow(std::log10(*point[0] / 0.05), 2) / 10 - 0.3 / static_cast<double>(epochs);
}

Search::Result result_of(const Search& search, const Step& step) {
  const auto& point = search.trials()[step.trial].point;
  if (*point[0] > 0.7) return {.score = std::nullopt};
  return {.score = accuracy(point, search.options().rungs[step.rung])};
}

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

struct Event {
  Step step;
  Point point;
  bool ends = false;
  Search::Result result{};
};

/// A sweep with several runs at once, whose results come in a random order; every event is recorded. `interrupt_at`: after so many events
/// another Search is made from the record alone.
std::vector<Event> recorded_sweep(std::uint64_t seed, std::size_t interrupt_at) {
  const auto make = [&] { return Search(conditional_space(), asha_options(15)); };
  auto search = make();
  std::vector<Event> events;
  std::vector<Step> running;
  core::Random random(seed, core::Purpose::test, 0);
  const auto record = [&](Event event) {
    events.push_back(std::move(event));
    if (events.size() != interrupt_at) return;
    search = make();
    for (const auto& [step, point, ends, result] : events) {
      if (ends)
        search.ended(step, result);
      else
        EXPECT_TRUE(search.begin(step, point));
    }
  };
  for (;;) {
    while (running.size() < 3) {
      const auto step = search.next();
      if (!step) break;
      running.push_back(*step);
      record({*step, search.trials()[step->trial].point});
    }
    if (running.empty()) return events;
    const auto which = static_cast<std::ptrdiff_t>(random.below(running.size()));
    const auto step = running[static_cast<std::size_t>(which)];
    running.erase(running.begin() + which);
    const auto result = result_of(search, step);
    search.ended(step, result);
    record({step, {}, true, result});
  }
}

TEST(Search, AnInterruptionAtAnyEventChangesNoDecision) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto whole = recorded_sweep(seed, 0);
    ASSERT_GT(whole.size(), 40U);
    for (std::size_t at = 1; at < whole.size(); ++at) {
      const auto parts = recorded_sweep(seed, at);
      ASSERT_EQ(parts.size(), whole.size()) << at;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(parts[i].step, whole[i].step) << at << " " << i;
        EXPECT_EQ(parts[i].point, whole[i].point) << at << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::sweep
