#include "experiment/sweep/space.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "tests/experiment/sweep/spaces.hpp"

namespace troupe::sweep {
namespace {

TEST(Space, TheEndsAndTheMiddleOfARangeAreThoseOfItsScale) {
  const Space space({real("a", 0.1, 0.9), real("b", 0.001, 1, true)});
  EXPECT_DOUBLE_EQ(space.at(0, 0), 0.1);
  EXPECT_DOUBLE_EQ(space.at(0, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(space.at(0, 1), 0.9);
  EXPECT_DOUBLE_EQ(space.at(1, 0), 0.001);
  EXPECT_DOUBLE_EQ(space.at(1, 0.5), 0.03162);  // √0.001 = 0.0316228
  EXPECT_DOUBLE_EQ(space.at(1, 1), 1);
}

TEST(Space, RealNumbersHaveFourDigitsOfTheirRange) {
  const Space space({real("a", 0.001, 1, true), real("b", 1000, 1001), real("c", 1e-7, 1e-3, true)});
  core::Random random(1, core::Purpose::test, 0);
  for (int i = 0; i < 200; ++i) {
    const auto point = space.random(random);
    EXPECT_LE(space.text(0, *point[0]).size(), std::string("0.001234").size()) << space.text(0, *point[0]);
    EXPECT_LE(space.text(1, *point[1]).size(), std::string("1000.1234").size()) << space.text(1, *point[1]);
    EXPECT_LE(space.text(2, *point[2]).size(), std::string("0.0000001234").size()) << space.text(2, *point[2]);
  }
}

/// Of [0, 1], whole numbers 1 to 4 have a quarter each: ⌊u · 4⌋ + 1.
TEST(Space, WholeNumbersShareTheirRangeEvenly) {
  const Space space({integer("a", 1, 4)});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(space.at(0, (i + 0.5) / 100), i / 25 + 1) << i;
  EXPECT_DOUBLE_EQ(space.cell(0, 3).low, 0.5);
  EXPECT_DOUBLE_EQ(space.cell(0, 3).high, 0.75);
}

/// log(2.5 / 1.5) / log(8.5 / 0.5) = 0.1803 of the range is the 2.
TEST(Space, WholeNumbersOnALogarithmicScaleHaveTheCellsOfTheirRounding) {
  const Space space({integer("a", 1, 8, true)});
  std::map<double, int> counts;
  constexpr int kMany = 100000;
  for (int i = 0; i < kMany; ++i) ++counts[space.at(0, (i + 0.5) / kMany)];
  EXPECT_EQ(counts.size(), 8U);
  EXPECT_NEAR(counts[2] / static_cast<double>(kMany), 0.18030, 1e-4);
  EXPECT_NEAR(space.cell(0, 2).high - space.cell(0, 2).low, 0.18030, 1e-5);
  EXPECT_DOUBLE_EQ(space.cell(0, 1).low, 0);
  EXPECT_DOUBLE_EQ(space.cell(0, 8).high, 1);
}

TEST(Space, APositionIsWhereItsValueComesFrom) {
  const Space space({real("a", -3, 5), real("b", 1e-4, 10, true), integer("c", 1, 1000, true), integer("d", -7, 90)});
  core::Random random(1, core::Purpose::test, 0);
  for (int n = 0; n < 1000; ++n)
    for (std::size_t i = 0; i < space.size(); ++i) {
      const double u = random.uniform(), value = space.at(i, u);
      EXPECT_NEAR(space.position(i, value), u, i < 2 ? 1e-3 : 1) << i;
      if (space[i].kind != Kind::integer) continue;
      EXPECT_GE(u, space.cell(i, value).low - 1e-12);
      EXPECT_LE(u, space.cell(i, value).high + 1e-12);
    }
}

TEST(Space, AParameterExistsOnlyWithTheChoicesThatItBelongsTo) {
  const auto space = conditional_space();
  const auto bsp = space.point([](std::size_t) { return 0.25; });
  EXPECT_EQ(bsp[1], 0);
  EXPECT_FALSE(bsp[2]);
  const auto easgd = space.point([](std::size_t) { return 0.75; });
  EXPECT_EQ(easgd[1], 1);
  EXPECT_TRUE(easgd[2]);
  EXPECT_TRUE(space.contains(bsp));
  EXPECT_TRUE(space.contains(easgd));
  EXPECT_FALSE(space.contains({0.1, 0.0, 4.0})) << "bsp has no tau";
  EXPECT_FALSE(space.contains({0.1, 1.0, std::nullopt})) << "easgd has one";
  EXPECT_FALSE(space.contains({0.1, 1.0, 65.0}));
  EXPECT_FALSE(space.contains({0.1, 1.0, 2.5}));
  EXPECT_FALSE(space.contains({0.1, 2.0, std::nullopt}));
  EXPECT_FALSE(space.contains({2.0, 0.0, std::nullopt}));
}

TEST(Space, CountsThePointsOfAFiniteSpace) {
  EXPECT_FALSE(conditional_space().count());
  auto tau = integer("tau", 1, 64);
  tau.depends_on = 0;
  tau.when = {1};
  EXPECT_EQ(Space({choice("s", {"1", "2", "3"}), tau, choice("b", {"1", "2"})}).count(), 2 + 128 + 2);
  EXPECT_EQ(Space({integer("a", 5, 5)}).count(), 1);
}

/// Two parameters of one key, each with a strategy of its own.
TEST(Space, ASettingIsOfTheParameterThatExists) {
  auto wide = real("train.lr", 0.1, 1), narrow = real("train.lr", 0.4, 0.6);
  wide.depends_on = narrow.depends_on = 0;
  wide.when = {0};
  narrow.when = {1};
  const Space space({choice("s", {"\"a\"", "\"b\""}), wide, narrow});
  EXPECT_EQ(space.point_of({{"train.lr", "0.5"}, {"s", "\"a\""}}), (Point{0.0, 0.5, std::nullopt}));
  EXPECT_EQ(space.point_of({{"s", "\"b\""}, {"train.lr", "0.5"}}), (Point{1.0, std::nullopt, 0.5}));
  EXPECT_EQ(space.point_of({{"s", "\"b\""}, {"train.lr", "0.9"}}), (Point{1.0, std::nullopt, std::nullopt}));
  EXPECT_EQ(space.point_of({{"train.lr", "0.5"}}), (Point{std::nullopt, std::nullopt, std::nullopt}));
}

TEST(Space, TextsAreReadBack) {
  const auto space = conditional_space();
  core::Random random(1, core::Purpose::test, 0);
  for (int n = 0; n < 200; ++n) {
    const auto point = space.random(random);
    for (std::size_t i = 0; i < space.size(); ++i) {
      if (!point[i]) continue;
      EXPECT_EQ(space.value_of(i, space.text(i, *point[i])), point[i]) << space.text(i, *point[i]);
    }
  }
  EXPECT_EQ(space.text(2, 16), "16");
  for (const char* no_value : {"", "0", "65", "2.5", "x", "3x", "nan"})
    EXPECT_FALSE(space.value_of(2, no_value)) << no_value;
  EXPECT_FALSE(space.value_of(1, "bsp"));
}

}  // namespace
}  // namespace troupe::sweep
