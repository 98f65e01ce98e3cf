#include "data/conversion/convert.hpp"

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/config.hpp"
#include "data/images/decode.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/data/made_pictures.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder).string());
  std::ranges::sort(names);
  return names;
}

DataConfig synthetic(std::int64_t samples) {
  DataConfig config;
  config.name = "synthetic";
  config.shape = {3, 12, 10};
  config.classes = 4;
  config.train_samples = samples;
  return config;
}

/// Sample → how often, of both as label and pixels.
std::map<std::pair<std::int32_t, Bytes>, int> samples_of(const Dataset& data) {
  std::map<std::pair<std::int32_t, Bytes>, int> samples;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    Bytes pixels(static_cast<std::size_t>(data.shape().size()));
    const auto label = data.read(i, pixels).value();
    ++samples[{label, pixels}];
  }
  return samples;
}

/// Converts 30 images, and opens what was written.
std::shared_ptr<const Dataset> there_and_back(const fs::path& folder, const ConvertOptions& options,
                                              const std::string& name) {
  const auto before = open_dataset(synthetic(30), Split::train).value();
  const auto converted = convert(*before, folder, "train", options);
  EXPECT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(converted->samples, 30);
  DataConfig config;
  config.name = name;
  config.path = folder;
  config.classes = 4;
  if (name != "batches") config.resize = 10;
  return open_dataset(config, Split::train).value();
}

TEST(ConvertTest, BatchFilesHaveTheSamePixels) {
  const TemporaryDirectory folder;
  const auto after = there_and_back(folder.path(), {.form = FileForm::batches, .per_file = 8}, "batches");
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("train-00000.batch", "train-00001.batch", "train-00002.batch", "train-00003.batch"));
  EXPECT_THAT(after->shard_begins(), ElementsAre(0, 8, 16, 24));
  EXPECT_EQ(samples_of(*after), samples_of(*open_dataset(synthetic(30), Split::train).value()));
}

TEST(ConvertTest, PngShardsAndFoldersLoseNothing) {
  for (const auto form : {FileForm::shards, FileForm::folder}) {
    const TemporaryDirectory folder;
    const auto* const name = form == FileForm::shards ? "shards" : "folder";
    const auto after = there_and_back(folder.path(), {.form = form, .png = true, .per_file = 7}, name);
    EXPECT_EQ(after->size(), 30);
    EXPECT_EQ(names_in(folder.path()).size(), form == FileForm::shards ? 5u : 30u);
    std::map<std::pair<std::int32_t, Bytes>, int> decoded;
    for (std::int64_t i = 0; i < after->size(); ++i) {
      Bytes bytes;
      const auto label = after->stored(i, bytes).value();
      PixelBuffer pixels;
      ASSERT_TRUE(decode_picture(bytes, {0, 0, 10, 12}, {10, 12}, pixels));
      Bytes planes;
      for (int c = 0; c < 3; ++c)
        for (int y = 0; y < 12; ++y)
          for (int x = 0; x < 10; ++x) planes.push_back(pixels.row(y)[4 * x + c]);
      ++decoded[{label, planes}];
    }
    EXPECT_EQ(decoded, samples_of(*open_dataset(synthetic(30), Split::train).value()));
  }
}

TEST(ConvertTest, PicturesStayAsTheyAre) {
  const TemporaryDirectory folder;
  const auto jpeg = made_jpeg({31, 17}), png = made_png({9, 40});
  for (const auto* name : {"train/cat/a.jpg", "train/dog/b.png"}) {
    fs::create_directories((folder.path() / name).parent_path());
    write_file(folder.path() / name, std::string(name).ends_with("jpg") ? jpeg : png);
  }
  DataConfig config;
  config.name = "folder";
  config.path = folder.path();
  config.resize = 8;
  const auto data = open_dataset(config, Split::train).value();
  ASSERT_TRUE(convert(*data, folder.path() / "shards", "train", {.shuffled = false}));
  ASSERT_TRUE(convert(*data, folder.path() / "folder", "train", {.form = FileForm::folder, .shuffled = false}));
  config.name = "shards";
  config.path = folder.path() / "shards";
  Bytes bytes;
  const auto shards = open_dataset(config, Split::train).value();
  EXPECT_EQ(shards->stored(0, bytes), 0);
  EXPECT_EQ(bytes, jpeg);
  EXPECT_EQ(shards->stored(1, bytes), 1);
  EXPECT_EQ(bytes, png);
  EXPECT_THAT(names_in(folder.path() / "folder"), ElementsAre("train/cat/00000000.jpg", "train/dog/00000001.png"));
}

TEST(ConvertTest, UnreadableSamplesAreLeftOutWithinTheLimit) {
  const TemporaryDirectory folder;
  for (const auto* name : {"a.jpg", "b.jpg", "c.jpg"}) {
    fs::create_directories(folder.path() / "train" / "cat");
    write_file(folder.path() / "train" / "cat" / name, made_jpeg({20, 20}));
  }
  write_file(folder.path() / "train" / "cat" / "b.jpg", text_bytes("no picture"));
  DataConfig config;
  config.name = "folder";
  config.path = folder.path();
  config.resize = 8;
  const auto data = open_dataset(config, Split::train).value();
  const auto refused = convert(*data, folder.path() / "refused", "train", {.form = FileForm::batches});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("b.jpg: neither JPEG nor PNG"));
  EXPECT_TRUE(names_in(folder.path() / "refused").empty());  // nothing that is not complete

  const auto converted = convert(*data, folder.path() / "out", "train", {.form = FileForm::batches, .max_bad = 1});
  ASSERT_TRUE(converted);
  EXPECT_EQ(converted->samples, 2);
  EXPECT_EQ(converted->left_out, 1);
  EXPECT_THAT(converted->first_error, HasSubstr("b.jpg"));
}

TEST(ConvertTest, ImagesThatNoPictureCanHoldAreRefused) {
  const TemporaryDirectory folder;
  const auto converted = convert(NumberedDataset(3, {2, 4, 4}), folder.path(), "train", {});
  ASSERT_FALSE(converted);
  EXPECT_EQ(converted.error().code, core::Errc::config);
  EXPECT_THAT(converted.error().message, HasSubstr("images of 2 channels cannot be written as pictures"));
}

TEST(ConvertTest, AStoppedConversionLeavesCompleteFilesOnly) {
  const TemporaryDirectory folder;
  const auto data = open_dataset(synthetic(30), Split::train).value();
  std::int64_t done = 0;
  const auto converted = convert(
      *data, folder.path(), "train", {.per_file = 8}, [&](std::int64_t count) { done = count; },
      [&] { return done == 20; });
  ASSERT_FALSE(converted);
  EXPECT_EQ(converted.error().code, core::Errc::interrupted);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("train-00000.tar", "train-00001.tar"));
}

}  // namespace
}  // namespace troupe::data
