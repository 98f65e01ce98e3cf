#include "experiment/confusion_matrix.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

using Cell = ConfusionMatrix::Cell;

TEST(ConfusionMatrix, CountsLabelsAndTheGreatestOutput) {
  ConfusionMatrix matrix;
  matrix.add(std::vector<std::int32_t>{2, 0, 0},
             std::vector<float>{0, 1, 2, /**/ 5, 5, 1, /**/ -3, -1, -2, /* not read */ 9, 9, 9}, 3);
  EXPECT_EQ(matrix.cells(), (std::vector<Cell>{{0, 0, 1}, {0, 1, 1}, {2, 2, 1}}));  // of equal outputs the first
  EXPECT_EQ(matrix.samples(), 3);
  EXPECT_EQ(matrix.count(0, 1), 1);
  EXPECT_EQ(matrix.count(1, 1), 0);
}

TEST(ConfusionMatrix, AccuracyIsByTrueClassAndTheWorstComeFirst) {
  ConfusionMatrix matrix;
  const auto add = [&](std::int32_t label, std::int32_t prediction, int times) {
    for (int i = 0; i < times; ++i) matrix.add(label, prediction);
  };
  add(3, 3, 9), add(3, 1, 1), add(5, 5, 1), add(5, 3, 1), add(5, 7, 2), add(7, 3, 1), add(9, 9, 2);
  const auto classes = matrix.classes();
  ASSERT_EQ(classes.size(), 4U);
  EXPECT_EQ(classes[0].label, 3);
  EXPECT_EQ(classes[0].samples, 10);
  EXPECT_DOUBLE_EQ(classes[0].accuracy(), 0.9);
  const auto worst = matrix.worst(3);
  ASSERT_EQ(worst.size(), 3U);
  EXPECT_EQ(worst[0].label, 7);
  EXPECT_EQ(worst[1].label, 5);
  EXPECT_EQ(worst[2].label, 3);
  EXPECT_EQ(matrix.most_often_taken_for(5), (Cell{5, 7, 2}));
  EXPECT_EQ(matrix.most_often_taken_for(9).samples, 0);
}

TEST(ConfusionMatrix, BatchesThatDoNotFitAreRefused) {
  ConfusionMatrix matrix;
  EXPECT_THROW(matrix.add(std::vector<std::int32_t>{0, 1}, std::vector<float>(5), 3), std::invalid_argument);
  EXPECT_THROW(matrix.add(std::vector<std::int32_t>{3}, std::vector<float>(3), 3), std::invalid_argument);
  EXPECT_THROW(matrix.add(std::vector<std::int32_t>{-1}, std::vector<float>(3), 3), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::experiment
