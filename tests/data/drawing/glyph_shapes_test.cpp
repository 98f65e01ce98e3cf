#include "data/drawing/glyph_shapes.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

TEST(GlyphShapesTest, EveryDigitHasSeveralWellFormedShapes) {
  for (std::int32_t digit = 0; digit < kGlyphClasses; ++digit) {
    SCOPED_TRACE(digit);
    EXPECT_GE(glyph_shapes(digit).size(), 2u);
    for (const auto& shape : glyph_shapes(digit)) {
      EXPECT_FALSE(shape.strokes.empty());
      for (const auto& stroke : shape.strokes) {
        EXPECT_GE(stroke.points.size(), 4u);
        EXPECT_EQ(stroke.points.size() % 3, 1u);
        for (const Point point : stroke.points) {
          EXPECT_TRUE(point.x >= 0 && point.x <= 100) << point.x;
          EXPECT_TRUE(point.y >= -2 && point.y <= 100) << point.y;  // a handle may lie outside where the ink does not
        }
      }
    }
  }
}

TEST(GlyphShapesTest, ALineIsACurveWithItsHandlesOnIt) {
  // The simplest 1: from (50, 8) to (50, 92); thirds of 84 are 28.
  const auto& points = glyph_shapes(1)[0].strokes.at(0).points;
  ASSERT_EQ(points.size(), 4u);
  const float y[] = {8, 36, 64, 92};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(points[i].x, 50);
    EXPECT_EQ(points[i].y, y[i]);
  }
}

TEST(GlyphShapesTest, ThereAreTenDigits) {
  EXPECT_THROW((void)glyph_shapes(10), std::out_of_range);
  EXPECT_THROW((void)glyph_shapes(-1), std::out_of_range);
}

}  // namespace
}  // namespace troupe::data
