#include "data/hdf5/image_reader.hpp"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

std::optional<AxisOrder> order_of(const std::vector<std::int64_t>& shape, std::optional<ImageSides> expected = {}) {
  return axis_order(shape, expected);
}

TEST(AxisOrderTest, TheNumberOfChannelsTellsIt) {
  EXPECT_EQ(order_of({3, 256, 256, 128}), AxisOrder::c01b);
  EXPECT_EQ(order_of({1, 28, 28, 3}), AxisOrder::c01b);
  EXPECT_EQ(order_of({128, 3, 256, 256}), AxisOrder::bc01);
  EXPECT_EQ(order_of({128, 1, 3, 3}), AxisOrder::bc01);
}

TEST(AxisOrderTest, WhatCannotBeToldIsNotGuessed) {
  EXPECT_EQ(order_of({3, 3, 32, 32}), std::nullopt);  // three images, or three rows
  EXPECT_EQ(order_of({1, 3, 32, 32}), std::nullopt);  // one image
  EXPECT_EQ(order_of({8, 32, 32, 3}), std::nullopt);  // channels last
  EXPECT_EQ(order_of({4, 32, 32, 16}), std::nullopt);
  EXPECT_EQ(order_of({3, 32, 32}), std::nullopt);
}

TEST(AxisOrderTest, TheShapeOfAnImageDecides) {
  EXPECT_EQ(order_of({3, 3, 32, 32}, ImageSides{3, 32, 32}), AxisOrder::bc01);
  EXPECT_EQ(order_of({3, 3, 32, 32}, ImageSides{3, 3, 32}), AxisOrder::c01b);
  EXPECT_EQ(order_of({4, 32, 32, 16}, ImageSides{4, 32, 32}), AxisOrder::c01b);
  EXPECT_EQ(order_of({3, 3, 3, 3}, ImageSides{3, 3, 3}), AxisOrder::c01b);
  EXPECT_EQ(order_of({3, 256, 256, 128}, ImageSides{3, 256, 255}), std::nullopt);
}

}  // namespace
}  // namespace troupe::data
