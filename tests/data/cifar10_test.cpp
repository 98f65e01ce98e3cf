#include "data/cifar10.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/config.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/forbidden.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using testing::HasSubstr;

constexpr std::size_t kPlane = 32 * 32;
constexpr std::size_t kRecord = 1 + 3 * kPlane;

/// Red is the column, green the row, blue `mark` everywhere.
Bytes record(std::uint8_t label, std::uint8_t mark) {
  Bytes bytes{label};
  for (std::size_t p = 0; p < kPlane; ++p) bytes.push_back(static_cast<std::uint8_t>(p % 32));
  for (std::size_t p = 0; p < kPlane; ++p) bytes.push_back(static_cast<std::uint8_t>(p / 32));
  bytes.resize(kRecord, mark);
  return bytes;
}

/// Batch b has two records of labels b and 9 with marks 10 b and 10 b + 1; the test batch three of labels 0, 1, 2.
void write_batches(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::uint8_t b = 1; b <= 5; ++b)
    write_file(folder / ("data_batch_" + std::to_string(b) + ".bin"),
               record(b, static_cast<std::uint8_t>(10 * b)) + record(9, static_cast<std::uint8_t>(10 * b + 1)));
  write_file(folder / "test_batch.bin", record(0, 200) + record(1, 201) + record(2, 202));
}

class Cifar10Test : public testing::Test {
 protected:
  void SetUp() override { write_batches(path()); }
  [[nodiscard]] auto open(Split split = Split::train, std::int64_t limit = 0) const {
    return Cifar10Dataset::open({path(), limit}, split);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }
  void expect_data_error(const std::vector<std::string>& words) const {
    const auto opened = open();
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Errc::data);
    for (const auto& word : words) EXPECT_THAT(opened.error().message, HasSubstr(word));
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Cifar10Test, ReadsTheBatchesInTheirOrder) {
  const auto train = open();
  ASSERT_TRUE(train.has_value()) << train.error().message;
  EXPECT_EQ((*train)->size(), 10);
  EXPECT_EQ((*train)->shape(), (ImageShape{3, 32, 32}));
  EXPECT_EQ((*train)->classes(), 10);
  Bytes pixels(3 * kPlane);
  EXPECT_EQ((*train)->read(6, pixels), 4);  // the first of batch 4
  EXPECT_EQ(pixels[5], 5);                  // red, row 0, column 5
  EXPECT_EQ(pixels[kPlane + 7 * 32], 7);    // green, row 7, column 0
  EXPECT_EQ(pixels[2 * kPlane], 40);        // blue
  EXPECT_EQ((*train)->read(9, pixels), 9);
  EXPECT_EQ(pixels.back(), 51);

  const auto test = open(Split::test);
  ASSERT_TRUE(test.has_value()) << test.error().message;
  EXPECT_EQ((*test)->size(), 3);
  EXPECT_EQ((*test)->read(2, pixels), 2);
}

TEST_F(Cifar10Test, FolderOfTheArchiveIsFound) {
  const TemporaryDirectory above;
  write_batches(above.path() / "cifar-10-batches-bin");
  const auto train = Cifar10Dataset::open({above.path(), 0}, Split::train);
  ASSERT_TRUE(train.has_value()) << train.error().message;
  EXPECT_EQ((*train)->size(), 10);
}

TEST_F(Cifar10Test, LimitKeepsTheFirstSamples) {
  EXPECT_EQ((*open(Split::train, 3))->size(), 3);
  EXPECT_EQ((*open(Split::train, 100))->size(), 10);
}

TEST_F(Cifar10Test, MissingFilesAreNamed) {
  std::filesystem::remove(path() / "data_batch_3.bin");
  expect_data_error({"data_batch_3.bin: the file is missing"});
  std::filesystem::remove(path() / "data_batch_1.bin");
  expect_data_error({"'cifar10' is missing: no data_batch_1.bin in " + path().string(), "set data.path"});
  const auto nowhere = Cifar10Dataset::open({path() / "nowhere", 0}, Split::test);
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_THAT(nowhere.error().message, HasSubstr("there is no such directory"));
}

TEST_F(Cifar10Test, ATruncatedRecordIsNamed) {
  const Bytes two = record(1, 0) + record(2, 0);
  for (const std::size_t size : {std::size_t{1}, kRecord - 1, kRecord + 1, 2 * kRecord - 1}) {
    write_file(path() / "data_batch_2.bin", Bytes(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(size)));
    expect_data_error({"data_batch_2.bin: truncated: record " + std::to_string(size / kRecord) + " has " +
                       std::to_string(size % kRecord) + " of 3073 bytes"});
  }
  write_file(path() / "data_batch_2.bin", {});
  expect_data_error({"data_batch_2.bin: the file is empty"});
}

TEST_F(Cifar10Test, ALabelOutOfRangeNamesTheRecord) {
  write_file(path() / "data_batch_5.bin", record(9, 0) + record(10, 0));
  expect_data_error({"data_batch_5.bin: record 1: label 10 is not in 0 ... 9"});
}

TEST_F(Cifar10Test, OutsideTheDataIsABug) {
  const auto train = open();
  ASSERT_TRUE(train.has_value());
  Bytes pixels(3 * kPlane), few(3 * kPlane - 1);
  EXPECT_THROW((void)(*train)->read(10, pixels), std::out_of_range);
  EXPECT_THROW((void)(*train)->read(0, few), std::out_of_range);
}

TEST_F(Cifar10Test, TrainingAugmentsAndEvaluationTakesTheCentre) {
  DataConfig config;
  config.name = "cifar10";
  config.path = path();
  config.mean = "none";
  config.crop = 24;
  config.pad = 2;
  config.mirror = true;
  config.shuffle = false;
  const auto source = open_source(config, 3);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  EXPECT_EQ(source->train->image_shape(), (ImageShape{3, 24, 24}));
  EXPECT_EQ(image_facts(config).value()->shape, source->train->image_shape());
  const std::size_t plane = 24 * 24;
  std::vector<float> images(10 * 3 * plane);
  std::vector<std::int32_t> labels(10);
  const auto byte = [&](std::size_t at) { return static_cast<int>(images[at] * 255 + 0.5f); };

  // The centre crop of 32 is [4, 28): red starts at column 4, green at row 4.
  ASSERT_TRUE(source->test->build_range(0, 3, images, labels).has_value());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(byte(3 * plane * i), 4);
    EXPECT_EQ(byte(3 * plane * i + 23), 27);
    EXPECT_EQ(byte(3 * plane * i + plane), 4);
    EXPECT_EQ(byte(3 * plane * i + 2 * plane), 200 + static_cast<int>(i));
  }

  // Training: all three channels of a sample show the same window. In the middle of the crop, which no padding reaches,
  // red gives the column and green the row of the source.
  const auto preprocess =
      Preprocess::create(preprocess_options(config), kCifar10Shape, {}).value();  // the same window by definition
  int mirrored = 0;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    ASSERT_TRUE(source->train->build({0, epoch, 0, 10, 0}, images, labels).has_value());
    for (std::size_t i = 0; i < 10; ++i) {
      const View view = preprocess.train_view(3, epoch, static_cast<std::int64_t>(i));
      const std::size_t middle = 3 * plane * i + 12 * 24 + 12;
      EXPECT_EQ(byte(middle), view.left + (view.mirrored ? 11 : 12));
      EXPECT_EQ(byte(middle + plane), view.top + 12);
      EXPECT_EQ(byte(middle + 2 * plane), 10 * static_cast<int>(i / 2 + 1) + static_cast<int>(i % 2));
      mirrored += view.mirrored ? 1 : 0;
    }
  }
  EXPECT_GT(mirrored, 5);
  EXPECT_LT(mirrored, 35);
}

TEST_F(Cifar10Test, AGivenHalfOfTheStatisticsLeavesTheOtherMeasured) {
  DataConfig config;
  config.name = "cifar10";
  config.path = path();
  config.normalise = true;
  const auto train = open_dataset(config, Split::train).value();
  const auto measured = measure_statistics(*train).value();
  std::vector<float> images(3 * kPlane);
  std::vector<std::int32_t> labels(1);
  constexpr double kBlue = 200 / 255.0;  // everywhere in test sample 0
  const auto blue = [&](const DataConfig& with, std::size_t pixel) {
    const auto source = open_source(with, 1).value();
    EXPECT_TRUE(source.test->build_range(0, 1, images, labels).has_value());
    return images[2 * kPlane + pixel];
  };
  auto mean = config;
  mean.channel_mean = {0.1, 0.2, 0.3};
  EXPECT_NEAR(blue(mean, 0), (kBlue - 0.3) / measured.channel_deviation[2], 1e-4);
  auto deviation = config;
  deviation.channel_deviation = {1, 1, 0.5};
  EXPECT_NEAR(blue(deviation, 0), (kBlue - measured.channel_mean[2]) / 0.5, 1e-5);
  deviation.mean = "image";
  EXPECT_NEAR(blue(deviation, 5), (kBlue - measured.image_mean[2 * kPlane + 5]) / 0.5, 1e-5);
}

TEST_F(Cifar10Test, FactsAgreeWithTheOpenedDataSet) {
  DataConfig config;
  config.name = "cifar10";
  config.path = path();
  const auto facts = image_facts(config).value();
  const auto source = open_source(config, 1);
  ASSERT_TRUE(facts.has_value() && source.has_value());
  EXPECT_EQ(facts->shape, source->train->image_shape());
  EXPECT_EQ(facts->classes, source->train->classes());
}

TEST_F(Cifar10Test, AFolderThatMayNotBeReadIsNotMissing) {
  const tests::Forbidden forbidden(path());
  const auto opened = Cifar10Dataset::open({path(), 0}, Split::train);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Errc::io);
  EXPECT_THAT(opened.error().message, HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace troupe::data
