#include "data/preprocessing.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ImageShape kSmall{1, 3, 4};

/// Bytes 0, 10, 20 … in rows of four.
std::vector<std::uint8_t> small_image() {
  std::vector<std::uint8_t> pixels;
  for (int p = 0; p < 12; ++p) pixels.push_back(static_cast<std::uint8_t>(10 * p));
  return pixels;
}

Preprocess preprocess_of(const PreprocessOptions& options, ImageShape shape, const Statistics& statistics = {}) {
  auto made = Preprocess::create(options, shape, statistics);
  if (!made) throw std::logic_error(made.error().message);
  return *std::move(made);
}

/// The part of small_image() that `view` shows, converted back to bytes.
std::vector<float> seen(const Preprocess& preprocess, const View& view) {
  std::vector<float> out(static_cast<std::size_t>(preprocess.output_shape().size()), -1);
  preprocess.apply(small_image(), view, out);
  for (float& value : out) value = std::round(value * 255);
  return out;
}

TEST(StatisticsTest, AreExactSums) {
  // Samples i = 0, 1 of two channels of 1 × 2: bytes {0, 1 | 2, 3} and {7, 8 | 9, 10}.
  //   channel 0: 0 1 7 8: mean 4, squares 0 + 1 + 49 + 64 = 114, variance 114/4 − 16 = 12.5
  //   channel 1: 2 3 9 10: mean 6, squares 4 + 9 + 81 + 100 = 194, variance 194/4 − 36 = 12.5
  const auto statistics = measure_statistics(NumberedDataset(2, {2, 1, 2}));
  ASSERT_TRUE(statistics.has_value());
  EXPECT_THAT(statistics->channel_mean, ElementsAre(4.0 / 255, 6.0 / 255));
  EXPECT_THAT(statistics->channel_deviation, ElementsAre(std::sqrt(12.5) / 255, std::sqrt(12.5) / 255));
  EXPECT_THAT(statistics->image_mean, ElementsAre(3.5 / 255, 4.5 / 255, 5.5 / 255, 6.5 / 255));
}

TEST(StatisticsTest, AConstantChannelHasDeviationOne) {
  const auto statistics = measure_statistics(NumberedDataset(1, {1, 1, 1}));
  ASSERT_TRUE(statistics.has_value());
  EXPECT_THAT(statistics->channel_deviation, ElementsAre(1.0));
}

TEST(StatisticsTest, AnUnreadableSampleIsNamed) {
  const auto statistics = measure_statistics(NumberedDataset(5, kSmall, 3));
  ASSERT_FALSE(statistics.has_value());
  EXPECT_EQ(statistics.error().code, Errc::data);
  EXPECT_THAT(statistics.error().message, HasSubstr("record 3"));
}

TEST(PreprocessTest, ScalesToOne) {
  const auto plain = preprocess_of({Mean::none, false, 0, 0, false}, {1, 1, 3});
  std::vector<float> out(3);
  plain.apply(std::vector<std::uint8_t>{0, 51, 255}, plain.center_view(), out);
  EXPECT_FLOAT_EQ(out[0], 0.0f);
  EXPECT_FLOAT_EQ(out[1], 0.2f);
  EXPECT_FLOAT_EQ(out[2], 1.0f);
}

TEST(PreprocessTest, SubtractsTheMeanAndDividesByTheDeviation) {
  const Statistics statistics{{0.2, 0.4}, {0.1, 0.5}, {0.0, 0.2, 0.4, 0.6}};
  const std::vector<std::uint8_t> pixels{51, 102, 153, 204};  // 0.2 0.4 | 0.6 0.8 in two channels
  std::vector<float> out(4);
  const auto run = [&](Mean mean, bool normalise) {
    const auto preprocess = preprocess_of({mean, normalise, 0, 0, false}, {2, 1, 2}, statistics);
    preprocess.apply(pixels, preprocess.center_view(), out);
    return out;
  };
  const auto near = [](float value) { return testing::FloatNear(value, 1e-6f); };
  EXPECT_THAT(run(Mean::channel, false), ElementsAre(near(0.0f), near(0.2f), near(0.2f), near(0.4f)));
  EXPECT_THAT(run(Mean::channel, true), ElementsAre(near(0.0f), near(2.0f), near(0.4f), near(0.8f)));
  EXPECT_THAT(run(Mean::image, false), ElementsAre(near(0.2f), near(0.2f), near(0.2f), near(0.2f)));
  EXPECT_THAT(run(Mean::image, true), ElementsAre(near(2.0f), near(2.0f), near(0.4f), near(0.4f)));
  EXPECT_THAT(run(Mean::none, true), ElementsAre(near(2.0f), near(4.0f), near(1.2f), near(1.6f)));
}

TEST(PreprocessTest, CropsMirrorsAndPads) {
  const auto crop = preprocess_of({Mean::none, false, 2, 1, true}, kSmall);
  EXPECT_EQ(crop.output_shape(), (ImageShape{1, 2, 2}));
  // 0 10 20 30 / 40 50 60 70 / 80 90 100 110
  EXPECT_THAT(seen(crop, {1, 1, false}), ElementsAre(50, 60, 90, 100));
  EXPECT_THAT(seen(crop, {1, 1, true}), ElementsAre(60, 50, 100, 90));
  EXPECT_THAT(seen(crop, {-1, -1, false}), ElementsAre(0, 0, 0, 0));  // the corner: three of padding, one black pixel
  EXPECT_THAT(seen(crop, {1, -1, false}), ElementsAre(0, 40, 0, 80));
  EXPECT_THAT(seen(crop, {1, -1, true}), ElementsAre(40, 0, 80, 0));
  EXPECT_THAT(seen(crop, {2, 3, false}), ElementsAre(110, 0, 0, 0));
  EXPECT_THAT(seen(crop, crop.center_view()),
              ElementsAre(10, 20, 50, 60));  // top (3 + 2 − 2)/2 − 1 = 0, left (4 + 2 − 2)/2 − 1 = 1
}

TEST(PreprocessTest, PaddingReadsZeroAfterNormalisation) {
  const auto preprocess = preprocess_of({Mean::channel, false, 0, 1, false}, {1, 1, 1}, {{0.5}, {1.0}, {0.5}});
  std::vector<float> out(1);
  preprocess.apply(std::vector<std::uint8_t>{0}, {-1, 0, false}, out);
  EXPECT_EQ(out[0], 0.0f);
  preprocess.apply(std::vector<std::uint8_t>{0}, {0, 0, false}, out);
  EXPECT_EQ(out[0], -0.5f);
}

TEST(PreprocessTest, MeanImageStaysWithItsPixels) {
  Statistics statistics{{0}, {1}, {}};
  for (const auto byte : small_image()) statistics.image_mean.push_back(byte / 255.0);
  const auto preprocess = preprocess_of({Mean::image, false, 2, 1, true}, kSmall, statistics);
  for (const View view : {View{1, 1, true}, View{-1, 0, false}, View{1, 2, false}})
    for (const float value : seen(preprocess, view)) EXPECT_EQ(value, 0.0f);
}

TEST(PreprocessTest, CropsEveryChannel) {
  const auto preprocess = preprocess_of({Mean::none, false, 1, 0, false}, {3, 2, 2});
  std::vector<float> out(3);
  preprocess.apply(std::vector<std::uint8_t>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, {1, 0, false}, out);
  for (float& value : out) value = std::round(value * 255);
  EXPECT_THAT(out, ElementsAre(2, 12, 22));
}

TEST(PreprocessTest, TrainViewIsDrawnFromSeedEpochAndSample) {
  const auto preprocess = preprocess_of({Mean::none, false, 28, 2, true}, {1, 28, 28});
  // Room for the crop: 28 + 2 · 2 − 28 = 4, so top and left are one of −2 … 2.
  core::Random random(9, core::Purpose::augment, std::uint64_t{3} << 40 | 1234);
  const auto top = static_cast<std::int64_t>(random.below(5)) - 2,
             left = static_cast<std::int64_t>(random.below(5)) - 2;
  const bool mirrored = random.below(2) == 1;
  EXPECT_EQ(preprocess.train_view(9, 3, 1234), (View{top, left, mirrored}));

  // Without mirroring the crop is the same.
  const auto upright = preprocess_of({Mean::none, false, 28, 2, false}, {1, 28, 28});
  EXPECT_EQ(upright.train_view(9, 3, 1234), (View{top, left, false}));
}

TEST(PreprocessTest, TrainViewsReachEveryPlaceAndDifferBetweenEpochs) {
  const auto preprocess = preprocess_of({Mean::none, false, 3, 1, true}, kSmall);
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, int> seen_views;
  int same = 0;
  for (std::int64_t sample = 0; sample < 4000; ++sample) {
    const View view = preprocess.train_view(1, 0, sample);
    ++seen_views[{view.top, view.left, view.mirrored}];
    same += view == preprocess.train_view(1, 1, sample);
  }
  // 3 tops (room 2) × 4 lefts (room 3) × 2 sides = 24 views, 167 of each; deviation 12.6; five are allowed.
  EXPECT_EQ(seen_views.size(), 24u);
  for (const auto& [view, count] : seen_views) EXPECT_NEAR(count, 167, 63);
  EXPECT_NEAR(same, 167, 63);
}

TEST(PreprocessTest, WithoutAugmentationTrainingSeesTheWholeImage) {
  const auto preprocess = preprocess_of({Mean::none, false, 0, 0, false}, kSmall);
  EXPECT_EQ(preprocess.train_view(1, 0, 5), View{});
  EXPECT_EQ(preprocess.center_view(), View{});
  EXPECT_EQ(preprocess.output_shape(), kSmall);
}

TEST(PreprocessTest, RefusesACropThatDoesNotFit) {
  const auto made = Preprocess::create({Mean::none, false, 6, 1, false}, kSmall, {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::config);
  EXPECT_THAT(made.error().message,
              HasSubstr("data.crop is 6 and images are 3 x 4 with data.pad = 1: the largest crop is 5"));
}

TEST(PreprocessTest, WrongSizesAreABug) {
  const auto preprocess = preprocess_of({Mean::none, false, 0, 0, false}, kSmall);
  std::vector<float> out(11);
  EXPECT_THROW(preprocess.apply(small_image(), View{}, out), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::data
