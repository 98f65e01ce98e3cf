#include "apps/grid/forecast.hpp"

#include <gtest/gtest.h>

namespace troupe::grid {
namespace {

const std::vector<std::size_t> kNone;

TEST(ForecastTest, ForecastIsTheWorkOverTheJobs) {
  const Forecast forecast({10, 20, 30}, 2);
  EXPECT_EQ(forecast.left({}, std::vector<std::size_t>{0, 1, 2}), 30.0);  // 60 / 2
  EXPECT_EQ(forecast.left({}, std::vector<std::size_t>{0, 2}), 30.0);     // the longest: 30 > 40 / 2
  EXPECT_EQ(forecast.left({}, kNone), 0.0);
}

TEST(ForecastTest, RunsThatEndedCorrectTheOthers) {
  Forecast forecast({10, 20, 30}, 1);
  forecast.measured(0, 20);  // twice as long as expected
  EXPECT_EQ(forecast.left({}, std::vector<std::size_t>{1, 2}), 100.0);
  const std::vector<Forecast::Running> running{{1, 15}};
  EXPECT_EQ(forecast.left(running, std::vector<std::size_t>{2}), 85.0);  // 40 − 15 + 60
  const std::vector<Forecast::Running> late{{1, 50}};
  EXPECT_EQ(forecast.left(late, std::vector<std::size_t>{2}), 60.0);  // never below zero
}

TEST(ForecastTest, WithoutEstimatesTheFirstRunDecides) {
  Forecast forecast({0, 0, 0}, 1);
  EXPECT_FALSE(forecast.left({}, std::vector<std::size_t>{0, 1, 2}).has_value());
  forecast.measured(0, 7);
  EXPECT_EQ(forecast.left({}, std::vector<std::size_t>{1, 2}), 14.0);
}

TEST(ForecastTest, RunsWithoutAnEstimateCountAsTheMean) {
  EXPECT_EQ(Forecast({10, 0, 30}, 1).left({}, std::vector<std::size_t>{1}), 20.0);
}

}  // namespace
}  // namespace troupe::grid
