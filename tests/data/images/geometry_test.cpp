#include "data/images/geometry.hpp"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

TEST(GeometryTest, TheCentreIsTorchvisions) {
  // Resize(256) and CenterCrop(224) of 500 x 375: 341 x 256; left = round(58.5) = 58 (to even), top 16.
  const auto framing = centre_framing({500, 375}, 256, 224);
  EXPECT_EQ(framing.resized, (PictureSize{341, 256}));
  EXPECT_EQ(framing.window, (PixelBox{58, 16, 224, 224}));
  EXPECT_EQ(framing.box, (PixelBox{0, 0, 500, 375}));
  EXPECT_EQ(centre_framing({1, 20'000}, 8, 8).resized, (PictureSize{8, 160'000}));
}

TEST(GeometryTest, RandomPartsLieInThePictureAndInTheRange) {
  const CropRange range;
  double smallest = 1, largest = 0;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    core::Random random(5, core::Purpose::test, k);
    const auto framing = random_framing({400, 300}, 224, range, random);
    const auto& box = framing.box;
    ASSERT_GE(box.left, 0);
    ASSERT_GE(box.top, 0);
    ASSERT_LE(box.left + box.width, 400);
    ASSERT_LE(box.top + box.height, 300);
    const double area = static_cast<double>(box.width * box.height) / (400.0 * 300.0);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.35);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    EXPECT_EQ(framing.resized, (PictureSize{224, 224}));
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_GT(largest, 0.95);
}

TEST(GeometryTest, PicturesThatNothingFitsGiveTheLargestCentredPart) {
  core::Random random(1, core::Purpose::test, 0);
  const auto narrow = random_framing({10, 1000}, 32, {.least_area = 0.9, .most_area = 1}, random);
  EXPECT_EQ(narrow.box, (PixelBox{0, 493, 10, 13}));
  const auto wide = random_framing({1000, 9}, 32, {.least_area = 0.9, .most_area = 1}, random);
  EXPECT_EQ(wide.box, (PixelBox{494, 0, 12, 9}));
  const auto dot = random_framing({1, 1}, 32, {}, random);
  EXPECT_EQ(dot.box, (PixelBox{0, 0, 1, 1}));
}

}  // namespace
}  // namespace troupe::data
