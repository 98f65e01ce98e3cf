#include "experiment/sweep/tpe.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "tests/experiment/sweep/spaces.hpp"

namespace troupe::sweep {
namespace {

using Loss = std::function<double(const Point&)>;

/// The points of a sweep of `count` that knows each result before the next point, with their losses, best first.
std::vector<std::pair<double, Point>> sweep_of(const Space& space, const Loss& loss, std::size_t count, bool tpe,
                                               std::uint64_t seed) {
  std::vector<std::pair<double, Point>> results;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Point> ranked;
    for (const auto& [value, point] : results) ranked.push_back(point);
    const auto point = tpe ? suggest(space, {ranked, {}}, {}, seed, i) : suggest_random(space, {ranked, {}}, seed, i);
    EXPECT_TRUE(space.contains(point));
    results.emplace_back(loss(point), point);
    std::ranges::stable_sort(results, {}, [](const auto& result) { return result.first; });
  }
  return results;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A bowl in the logarithm of the rate, in alpha and in the logarithm of tau, around (0.05, 0.3, 4).
double bowl(const Point& point) {
  const double rate = std::log10(*point[0] / 0.05) / 3, alpha = *point[1] - 0.3,
               tau = std::log(*point[2] / 4) / std::log(64);
  return rate * rate + alpha * alpha + tau * tau;
}
Space bowl_space() {
  return Space({real("lr", 0.001, 1, true), real("alpha", 0.05, 0.95), integer("tau", 1, 64, true)});
}

/// Of random points r from the optimum of a d-dimensional bowl, the best of n is at r ~ n^(-1/d): to halve its distance in three dimensions
/// takes eight times as many.
TEST(Tpe, FindsTheBottomOfABowlFromFewerPointsThanChance) {
  std::vector<double> tpe, chance, more_chance;
  for (std::uint64_t seed = 1; seed <= 21; ++seed) {
    tpe.push_back(sweep_of(bowl_space(), bowl, 40, true, seed).front().first);
    chance.push_back(sweep_of(bowl_space(), bowl, 40, false, seed).front().first);
    more_chance.push_back(sweep_of(bowl_space(), bowl, 120, false, seed).front().first);
  }
  RecordProperty("tpe", std::to_string(median(tpe)));
  RecordProperty("chance", std::to_string(median(chance)));
  EXPECT_LT(median(tpe), median(chance) / 4) << median(chance);
  EXPECT_LT(median(tpe), median(more_chance)) << "of three times as many points";
}

/// With easgd the loss is lower, and then tau decides.
TEST(Tpe, FindsTheBetterChoiceAndItsParameter) {
  const auto space = conditional_space();
  const Loss loss = [](const Point& point) {
    const double rate = std::pow(std::log10(*point[0] / 0.05) / 3, 2);
    return rate + (point[2] ? std::pow(std::log(*point[2] / 16) / std::log(64), 2) : 0.3);
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto results = sweep_of(space, loss, 40, true, seed);
    found += results.front().first < 0.01;
    const auto bsp = std::ranges::count_if(results, [](const auto& result) { return !result.second[2]; });
    EXPECT_LT(bsp, 16) << "of 40 points";
  }
  EXPECT_GE(found, 17);
}

TEST(Tpe, TheSameHistoryGivesTheSamePointAndAnotherSeedAnother) {
  const auto space = bowl_space();
  std::vector<Point> ranked;
  for (std::uint64_t i = 0; i < 12; ++i) ranked.push_back(spread(space, 1, i));
  EXPECT_EQ(suggest(space, {ranked, {}}, {}, 1, 12), suggest(space, {ranked, {}}, {}, 1, 12));
  EXPECT_NE(suggest(space, {ranked, {}}, {}, 1, 12), suggest(space, {ranked, {}}, {}, 2, 12));
  EXPECT_NE(suggest(space, {ranked, {}}, {}, 1, 12), suggest(space, {ranked, {}}, {}, 1, 13));
}

TEST(Tpe, NoPointOfAFiniteSpaceComesTwice) {
  const Space space({integer("a", 1, 5), choice("b", {"1", "2", "3"})});
  for (const bool tpe : {true, false}) {
    const auto results = sweep_of(
        space, [](const Point& p) { return *p[0] + *p[1]; }, 15, tpe, 3);
    std::set<Point> points;
    for (const auto& [loss, point] : results) points.insert(point);
    EXPECT_EQ(points.size(), 15U);
  }
}

/// Points that are asked for together keep away from each other: with the pending ones in g, eight points are further apart.
TEST(Tpe, PointsThatAreAskedForTogetherDiffer) {
  const Space space({real("a", 0, 1), real("b", 0, 1)});
  std::vector<Point> ranked;
  for (std::uint64_t i = 0; i < 20; ++i) ranked.push_back(spread(space, 1, i));
  std::ranges::sort(ranked, {}, [](const Point& p) { return std::hypot(*p[0] - 0.5, *p[1] - 0.5); });
  const auto nearest = [&](bool knows) {
    std::vector<Point> asked;
    for (std::uint64_t i = 20; i < 28; ++i)
      asked.push_back(
          suggest(space, {ranked, knows ? std::span<const Point>(asked) : std::span<const Point>()}, {}, 1, i));
    double sum = 0;
    for (const auto& p : asked) {
      double least = 1;
      for (const auto& q : asked)
        if (&p != &q) least = std::min(least, std::hypot(*p[0] - *q[0], *p[1] - *q[1]));
      sum += least;
    }
    return sum / 8;
  };
  EXPECT_GT(nearest(true), 1.5 * nearest(false));
}

/// In two dimensions the first 16 points of the recurrence leave no 3 × 3 cell empty, which 16 independent points do with probability 0.2.
TEST(Tpe, TheFirstPointsAreSpreadEvenly) {
  const Space space({real("a", 0, 1), real("b", 0, 1)});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::set<int> cells;
    for (std::uint64_t i = 0; i < 16; ++i) {
      const auto p = spread(space, seed, i);
      cells.insert(std::min(static_cast<int>(*p[0] * 3), 2) * 3 + std::min(static_cast<int>(*p[1] * 3), 2));
    }
    EXPECT_EQ(cells.size(), 9U) << seed;
  }
}

TEST(Tpe, TheGoodShareIsRoundedUpAndNeverEmpty) {
  EXPECT_EQ(good_count({.good = 0.15}, 1), 1U);
  EXPECT_EQ(good_count({.good = 0.15}, 10), 2U);
  EXPECT_EQ(good_count({.good = 0.15}, 20), 3U);
  EXPECT_EQ(good_count({.good = 0.15}, 21), 4U);
}

}  // namespace
}  // namespace troupe::sweep
