#include "data/images/decode.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/random.hpp"
#include "tests/data/made_pictures.hpp"

namespace troupe::data {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMostPixels = 1 << 24;

PixelBuffer decoded(const Bytes& bytes, const PixelBox& box, PictureSize least) {
  PixelBuffer buffer;
  const auto result = decode_picture(bytes, box, least, buffer);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return buffer;
}

PixelBuffer decoded_whole(const Bytes& bytes) {
  const auto size = picture_size(bytes, kMostPixels).value();
  return decoded(bytes, {0, 0, size.width, size.height}, size);
}

std::string error_of(const Bytes& bytes, std::int64_t most_pixels = kMostPixels) {
  const auto size = picture_size(bytes, most_pixels);
  if (!size) {
    EXPECT_EQ(size.error().code, core::Errc::data);
    return size.error().message;
  }
  PixelBuffer buffer;
  const auto result = decode_picture(bytes, {0, 0, size->width, size->height}, *size, buffer);
  EXPECT_FALSE(result);
  return result ? "" : result.error().message;
}

/// The largest difference from made_value() over the whole picture. `grey`: of channel 0.
int worst(const PixelBuffer& buffer, bool grey = false) {
  int most = 0;
  for (std::int64_t y = 0; y < buffer.size.height; ++y)
    for (std::int64_t x = 0; x < buffer.size.width; ++x)
      for (int c = 0; c < 3; ++c)
        most = std::max(most, std::abs(buffer.row(y)[4 * x + c] - made_value(x, y, grey ? 0 : c)));
  return most;
}

TEST(DecodeTest, EveryKindOfJpegIsRgb) {
  for (const auto kind : {JpegKind::full_chroma, JpegKind::colour, JpegKind::progressive})
    EXPECT_LE(worst(decoded_whole(made_jpeg({70, 50}, kind))), 24);
  EXPECT_LE(worst(decoded_whole(made_jpeg({70, 50}, JpegKind::grey)), true), 12);
  // Written inverted with an Adobe marker, black 255: no black. The inks are then the colours.
  EXPECT_LE(worst(decoded_whole(made_jpeg({70, 50}, JpegKind::cmyk))), 12);
}

TEST(DecodeTest, EveryKindOfPngIsExactRgb) {
  for (const auto kind : {PngKind::rgb, PngKind::rgba, PngKind::rgb16, PngKind::interlaced})
    EXPECT_EQ(worst(decoded_whole(made_png({37, 29}, kind))), 0);
  for (const auto kind : {PngKind::grey, PngKind::grey16})
    EXPECT_EQ(worst(decoded_whole(made_png({37, 29}, kind)), true), 0);
}

TEST(DecodeTest, APartHasThePixelsOfTheWhole) {
  core::Random random(2, core::Purpose::test, 0);
  const std::vector<Bytes> files{made_jpeg({150, 110}),
                                 made_jpeg({150, 110}, JpegKind::full_chroma),
                                 made_jpeg({150, 110}, JpegKind::progressive),
                                 made_jpeg({150, 110}, JpegKind::grey),
                                 made_png({150, 110}),
                                 made_png({150, 110}, PngKind::interlaced)};
  for (const auto& file : files) {
    const auto whole = decoded_whole(file);
    for (int k = 0; k < 60; ++k) {
      PixelBox box;
      box.left = static_cast<std::int64_t>(random.below(150));
      box.top = static_cast<std::int64_t>(random.below(110));
      box.width = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(150 - box.left)));
      box.height = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(110 - box.top)));
      const auto part = decoded(file, box, {box.width, box.height});
      ASSERT_EQ(part.box.width, static_cast<double>(box.width));
      ASSERT_EQ(part.box.height, static_cast<double>(box.height));
      const auto left = static_cast<std::int64_t>(part.box.left), top = static_cast<std::int64_t>(part.box.top);
      for (std::int64_t y = 0; y < box.height; ++y)
        for (std::int64_t x = 0; x < box.width; ++x)
          for (std::int64_t c = 0; c < 3; ++c)
            ASSERT_EQ(part.row(top + y)[4 * (left + x) + c], whole.row(box.top + y)[4 * (box.left + x) + c])
                << "file " << (&file - files.data()) << " x " << x << " y " << y << " of " << box.width << " x "
                << box.height << " at " << box.left << ", " << box.top;
    }
  }
}

TEST(DecodeTest, AJpegIsReducedNoFurtherThanNeeded) {
  const auto file = made_jpeg({640, 480});
  struct Case {
    PictureSize least;
    double width, height;  // of the box in the buffer
  };
  for (const auto& expected : {Case{{320, 240}, 320, 240}, Case{{321, 240}, 640, 480}, Case{{100, 100}, 160, 120},
                               Case{{80, 60}, 80, 60}, Case{{1, 1}, 80, 60}}) {
    const auto buffer = decoded(file, {0, 0, 640, 480}, expected.least);
    EXPECT_EQ(buffer.box.width, expected.width);
    EXPECT_EQ(buffer.box.height, expected.height);
  }
  // A part, half the size: its pixels are the means of four, but for the loss of the format.
  const auto part = decoded(file, {100, 60, 200, 100}, {100, 50});
  const auto left = static_cast<std::int64_t>(part.box.left), top = static_cast<std::int64_t>(part.box.top);
  for (std::int64_t y = 0; y < 50; ++y)
    for (std::int64_t x = 0; x < 100; ++x) {
      const auto px = 100 + 2 * x, py = 60 + 2 * y;
      const int mean = (made_value(px, py, 1) + made_value(px + 1, py, 1) + made_value(px, py + 1, 1) +
                        made_value(px + 1, py + 1, 1)) /
                       4;
      ASSERT_NEAR(part.row(top + y)[4 * (left + x) + 1], mean, 16);
    }
}

TEST(DecodeTest, OtherFormatsAreNamed) {
  EXPECT_THAT(error_of(text_bytes("GIF89a etc.")), HasSubstr("a GIF: JPEG and PNG are read"));
  EXPECT_THAT(error_of(text_bytes("RIFF....WEBPVP8 ")), HasSubstr("a WebP"));
  EXPECT_THAT(error_of(text_bytes("hello")), HasSubstr("neither JPEG nor PNG"));
  EXPECT_THAT(error_of({}), HasSubstr("an empty file"));
  EXPECT_THAT(error_of(made_apng({5, 5})), HasSubstr("animated PNG"));
}

TEST(DecodeTest, ALimitOnPixelsHoldsBeforeAnythingIsDecoded) {
  const auto jpeg = made_jpeg({40, 30});
  EXPECT_THAT(error_of(jpeg, 1199), HasSubstr("40 x 30 pixels are more than data.max_pixels = 1199"));
  EXPECT_TRUE(picture_size(jpeg, 1200));
  auto png = made_png({40, 30});
  png[16] = png[20] = 0x7f;  // a width and height of two thousand million
  EXPECT_THAT(error_of(png), HasSubstr("more than data.max_pixels"));
}

/// Kilobytes since the process began.
long most_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(DecodeTest, CompressedTextsOfAPngTakeNoMemory) {
  // 40 texts of 7.9 MB, each 8 KB in the file: libpng would keep them all.
  Bytes text{'k', 0, 0};
  const Bytes letters(7'900'000, 'a');
  uLongf length = compressBound(static_cast<uLong>(letters.size()));
  text.resize(3 + length);
  ASSERT_EQ(compress2(text.data() + 3, &length, letters.data(), static_cast<uLong>(letters.size()), 9), Z_OK);
  text.resize(3 + length);
  auto png = made_png({20, 16});
  for (int k = 0; k < 40; ++k) png = with_chunk(std::move(png), "zTXt", text);
  const long before = most_memory();
  EXPECT_EQ(worst(decoded_whole(png)), 0);
  EXPECT_LT(most_memory() - before, 100'000);
}

TEST(DecodeTest, AHugeInterlacedPngsMemoryIsGivenBack) {
  const auto png = made_png({3000, 2000}, PngKind::interlaced);  // 24 MB in memory
  PixelBuffer buffer;
  const auto in_use = [] {
    const auto memory = ::mallinfo2();
    return memory.uordblks + memory.hblkhd;
  };
  const auto before = in_use();
  ASSERT_TRUE(decode_picture(png, {0, 0, 8, 8}, {8, 8}, buffer));
  EXPECT_LT(in_use(), before + (12 << 20));
}

TEST(DecodeTest, ThousandsOfScansAreRefused) {
  EXPECT_THAT(error_of(made_jpeg({16, 16}, JpegKind::many_scans)), HasSubstr("damaged JPEG: more than 500 scans"));
}

TEST(DecodeTest, EveryTruncationIsAnError) {
  for (const auto& whole : {made_jpeg({64, 48}), made_jpeg({64, 48}, JpegKind::progressive), made_png({20, 16})}) {
    for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 200)
      EXPECT_NE(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))), "") << length;
  }
}

TEST(DecodeTest, DamagedBytesNeverCrash) {
  core::Random random(9, core::Purpose::test, 0);
  std::size_t refused = 0;
  for (const auto& whole : {made_jpeg({64, 48}), made_jpeg({64, 48}, JpegKind::progressive), made_png({20, 16}),
                            made_png({20, 16}, PngKind::interlaced)})
    for (int k = 0; k < 400; ++k) {
      auto bytes = whole;
      for (int changes = 0; changes < 3; ++changes)
        bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.below(256));
      const auto size = picture_size(bytes, 1 << 20);
      PixelBuffer buffer;
      refused += !size || !decode_picture(bytes, {0, 0, size->width, size->height}, *size, buffer);
    }
  EXPECT_GT(refused, 800u);  // every PNG has checksums; a JPEG's pixels may just change
}

}  // namespace
}  // namespace troupe::data
