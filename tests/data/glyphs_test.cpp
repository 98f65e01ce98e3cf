#include "data/glyphs.hpp"

#include <array>
#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

using Image = std::array<std::uint8_t, kGlyphPixels>;

Image draw(std::uint64_t seed, Split split, std::int64_t index) {
  Image image;
  draw_glyph(seed, split, index, image);
  return image;
}

/// FNV-1a, 64 bits.
std::uint64_t hash(std::uint64_t seed, Split split, std::int64_t samples) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (std::int64_t index = 0; index < samples; ++index)
    for (const std::uint8_t byte : draw(seed, split, index)) value = (value ^ byte) * 0x100000001b3;
  return value;
}

/// Every platform must draw these images. A change here changes every run on glyphs: note it in the changelog.
TEST(GlyphsTest, GoldenImages) {
  EXPECT_EQ(hash(1, Split::train, 200), 0x1dbf39b6c2e24fd2u);
  EXPECT_EQ(hash(1, Split::test, 200), 0xf9428109d3e5c993u);
}

TEST(GlyphsTest, IsAPureFunctionOfSeedSplitAndIndex) {
  EXPECT_EQ(draw(1, Split::train, 5), draw(1, Split::train, 5));
  EXPECT_NE(draw(1, Split::train, 5), draw(2, Split::train, 5));
  EXPECT_NE(draw(1, Split::train, 5), draw(1, Split::test, 5));
  EXPECT_NE(draw(1, Split::train, 5), draw(1, Split::train, 15));
}

TEST(GlyphsTest, EveryImageHasInkOnAQuietBackground) {
  for (std::int64_t index = 0; index < 500; ++index) {
    const Image image = draw(1, Split::train, index);
    int ink = 0, background = 0;
    for (const std::uint8_t byte : image) ink += byte > 90, background += byte < 40;
    EXPECT_GT(ink, 10) << "sample " << index;
    EXPECT_GT(background, 400) << "sample " << index;
  }
}

TEST(GlyphDatasetTest, HasMnistsFormat) {
  const GlyphDataset train(1, Split::train, 25), test(1, Split::test, 10);
  EXPECT_EQ(train.name(), "glyphs");
  EXPECT_EQ(train.size(), 25);
  EXPECT_EQ(train.classes(), 10);
  EXPECT_EQ(train.shape(), (ImageShape{1, 28, 28}));
  Image image;
  EXPECT_EQ(train.read(17, image), 7);
  EXPECT_EQ(image, draw(1, Split::train, 17));
  EXPECT_EQ(test.read(9, image), 9);
  EXPECT_EQ(image, draw(1, Split::test, 9));
}

TEST(GlyphDatasetTest, IsWholeWithoutALimit) {
  const GlyphDataset test(1, Split::test, 0, 2);
  EXPECT_EQ(test.size(), 10'000);
  Image image;
  EXPECT_EQ(test.read(9'999, image), 9);
  EXPECT_EQ(image, draw(1, Split::test, 9'999));
}

TEST(GlyphDatasetTest, DoesNotDependOnTheNumberOfThreads) {
  const GlyphDataset one(3, Split::train, 101, 1), four(3, Split::train, 101, 4);
  Image a, b;
  for (std::int64_t index = 0; index < 101; ++index) {
    EXPECT_EQ(one.read(index, a).value(), four.read(index, b).value());
    EXPECT_EQ(a, b) << "sample " << index;
  }
}

TEST(GlyphDatasetTest, OutsideTheDataIsABug) {
  const GlyphDataset data(1, Split::train, 5);
  Image image;
  std::array<std::uint8_t, 10> small;
  EXPECT_THROW((void)data.read(5, image), std::out_of_range);
  EXPECT_THROW((void)data.read(0, small), std::out_of_range);
}

}  // namespace
}  // namespace troupe::data
