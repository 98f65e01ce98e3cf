#include "experiment/state/weighted_mean.hpp"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

TEST(WeightedMeanTest, DividesByTheSumOfTheWeights) {
  const std::vector<float> a{1, 2};
  const std::vector<float> b{5, -2};
  WeightedMean mean;
  mean.add(a, 0.25);
  mean.add(b, 0.5);
  std::vector<float> result(2);
  mean.take(result);
  EXPECT_FLOAT_EQ(result[0], (0.25F * 1 + 0.5F * 5) / 0.75F);
  EXPECT_FLOAT_EQ(result[1], (0.25F * 2 - 0.5F * 2) / 0.75F);
  EXPECT_DOUBLE_EQ(mean.weight(), 0.75);
}

TEST(WeightedMeanTest, RefusesEmptyAndUnequalVectors) {
  WeightedMean mean;
  std::vector<float> result(1);
  EXPECT_THROW(mean.take(result), std::logic_error);
  mean.add(std::vector<float>{1}, 1);
  EXPECT_THROW(mean.add(std::vector<float>{1, 2}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::experiment
