#include "data/images/encode.hpp"

#include <gtest/gtest.h>

#include "data/images/decode.hpp"
#include "tests/data/made_pictures.hpp"

namespace troupe::data {
namespace {

/// The largest difference of any value after decoding.
int worst_after(const Bytes& encoded, ImageShape shape, const Bytes& pixels) {
  const auto size = picture_size(encoded, 1'000'000).value();
  EXPECT_EQ(size, (PictureSize{shape.width, shape.height}));
  PixelBuffer buffer;
  EXPECT_TRUE(decode_picture(encoded, {0, 0, size.width, size.height}, size, buffer));
  int worst = 0;
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < shape.height; ++y)
      for (std::int64_t x = 0; x < shape.width; ++x) {
        const auto own = shape.channels == 1 ? 0 : c;
        const int value = pixels[static_cast<std::size_t>((own * shape.height + y) * shape.width + x)];
        worst = std::max(worst, std::abs(value - buffer.row(y)[4 * x + c]));
      }
  return worst;
}

Bytes smooth_pixels(ImageShape shape) {
  Bytes pixels;
  for (std::int64_t c = 0; c < shape.channels; ++c)
    for (std::int64_t y = 0; y < shape.height; ++y)
      for (std::int64_t x = 0; x < shape.width; ++x) pixels.push_back(made_value(x, y, static_cast<int>(c)));
  return pixels;
}

TEST(EncodeTest, PngIsExactAndJpegNear) {
  for (const auto shape : {ImageShape{3, 20, 33}, ImageShape{1, 7, 5}, ImageShape{3, 1, 1}}) {
    const auto pixels = smooth_pixels(shape);
    EXPECT_EQ(worst_after(encode_png(shape, pixels).value(), shape, pixels), 0);
    EXPECT_LE(worst_after(encode_jpeg(shape, pixels, 100).value(), shape, pixels), 4);
    EXPECT_LE(worst_after(encode_jpeg(shape, pixels, 90).value(), shape, pixels), 24);
  }
}

TEST(EncodeTest, WhatNoPictureHoldsIsRefused) {
  EXPECT_EQ(encode_png({2, 1, 1}, Bytes(2)).error().code, core::Errc::config);
  EXPECT_EQ(encode_jpeg({1, 1, 70'000}, Bytes(70'000), 90).error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::data
