#include "data/images/resample.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "tests/data/images/golden.hpp"

namespace troupe::data {
namespace {

constexpr PictureSize kGoldenSize{23, 17};

PixelBuffer golden_picture() {
  PixelBuffer buffer;
  buffer.reshape(kGoldenSize);
  for (std::int64_t y = 0; y < kGoldenSize.height; ++y)
    for (std::int64_t x = 0; x < kGoldenSize.width; ++x)
      for (int c = 0; c < 3; ++c)
        buffer.row(y)[4 * x + c] = static_cast<std::uint8_t>(37 * x + 91 * y + 53 * c + x * y);
  buffer.box = {0, 0, 23, 17};
  return buffer;
}

std::vector<std::uint8_t> resampled(const PixelBuffer& buffer, PictureSize resized, const PixelBox& window) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(3 * window.width * window.height));
  resample(buffer, resized, window, out);
  return out;
}

/// PIL rounds between its two passes: one of 255 apart at most.
void expect_near(const std::vector<std::uint8_t>& ours, const std::vector<int>& golden) {
  ASSERT_EQ(ours.size(), golden.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_LE(std::abs(ours[i] - golden[i]), 1) << "value " << i;
}

TEST(ResampleTest, AgreesWithPil) {
  auto buffer = golden_picture();
  expect_near(resampled(buffer, {7, 5}, {0, 0, 7, 5}), golden::kReduced);
  buffer.box = {1.5, 2.25, 19.25, 13.25};
  expect_near(resampled(buffer, {6, 4}, {0, 0, 6, 4}), golden::kWithinPixels);
  PixelBuffer part;
  part.reshape({4, 3});
  for (std::int64_t y = 0; y < 3; ++y)
    std::copy_n(golden_picture().row(y + 3) + 8, 16, part.row(y));  // columns 2 … 5, rows 3 … 5
  part.box = {0, 0, 4, 3};
  expect_near(resampled(part, {9, 7}, {0, 0, 9, 7}), golden::kEnlarged);
}

TEST(ResampleTest, TheSameSizeIsTheSamePicture) {
  const auto buffer = golden_picture();
  const auto out = resampled(buffer, kGoldenSize, {0, 0, 23, 17});
  for (std::int64_t y = 0; y < 17; ++y)
    for (std::int64_t x = 0; x < 23; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        ASSERT_EQ(out[static_cast<std::size_t>((c * 17 + y) * 23 + x)], buffer.row(y)[4 * x + c]);
}

TEST(ResampleTest, AWindowIsThePartOfTheWhole) {
  const auto buffer = golden_picture();
  core::Random random(1, core::Purpose::test, 0);
  for (int k = 0; k < 200; ++k) {
    const PictureSize resized{1 + static_cast<std::int64_t>(random.below(40)),
                              1 + static_cast<std::int64_t>(random.below(40))};
    const auto whole = resampled(buffer, resized, {0, 0, resized.width, resized.height});
    PixelBox window;
    window.left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(resized.width)));
    window.top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(resized.height)));
    window.width = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(resized.width - window.left)));
    window.height =
        1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(resized.height - window.top)));
    const auto part = resampled(buffer, resized, window);
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t y = 0; y < window.height; ++y)
        for (std::int64_t x = 0; x < window.width; ++x)
          ASSERT_EQ(
              part[static_cast<std::size_t>((c * window.height + y) * window.width + x)],
              whole[static_cast<std::size_t>((c * resized.height + y + window.top) * resized.width + x + window.left)]);
  }
}

TEST(ResampleTest, WhiteStaysWhiteAtAnySize) {
  PixelBuffer white;
  white.reshape({31, 7});
  std::fill(white.bytes.begin(), white.bytes.end(), std::uint8_t{255});
  white.box = {0.3, 0.1, 30.5, 6.7};
  for (std::int64_t side = 1; side < 60; ++side)
    for (const auto value : resampled(white, {side, side}, {0, 0, side, side})) ASSERT_EQ(value, 255);
}

TEST(ResampleTest, AWindowOutsideIsABug) {
  const auto buffer = golden_picture();
  std::vector<std::uint8_t> out(3 * 4 * 4);
  EXPECT_THROW(resample(buffer, {7, 5}, {4, 0, 4, 4}, out), std::invalid_argument);
  EXPECT_THROW(resample(buffer, {7, 5}, {0, 0, 3, 4}, out), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::data
