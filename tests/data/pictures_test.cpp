#include "data/pictures.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/batch_builder.hpp"
#include "data/config.hpp"
#include "data/fingerprint.hpp"
#include "data/sources/synthetic.hpp"
#include "data/statistics.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/data/made_pictures.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::HasSubstr;

void put_picture(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  write_file(path, bytes);
}

/// Folders of `samples` training pictures and half as many test pictures of three classes, of many sizes.
void write_folders(const fs::path& path, int samples) {
  for (int i = 0; i < samples; ++i) {
    const PictureSize size{40 + 7 * (i % 9), 90 - 5 * (i % 11)};
    const auto bytes = i % 5 == 0 ? made_png(size, PngKind::rgb, i) : made_jpeg(size, JpegKind::colour, i);
    for (const auto* split : {"train", "val"})
      if (split[0] == 't' || i % 2 == 0)
        put_picture(path / split / ("class" + std::to_string(i % 3)) / (std::to_string(i) + ".jpg"), bytes);
  }
}

DataConfig folder_config(const fs::path& path) {
  DataConfig config;
  config.name = "folder";
  config.path = path;
  config.crop = 24;
  config.random_resized_crop = true;
  config.mirror = true;
  config.brightness = config.contrast = config.saturation = 0.3;
  return config;
}

struct BatchArrays {
  BatchArrays(const BatchBuilder& builder, std::int64_t count)
      : images(static_cast<std::size_t>(count * builder.image_shape().size())),
        labels(static_cast<std::size_t>(count)) {}
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  bool operator==(const BatchArrays&) const = default;
};

/// What two decoders have in common is nothing: each opens the files itself.
std::vector<BatchArrays> built(const DataConfig& config, std::size_t threads, std::int64_t leases) {
  constexpr std::int64_t kBatch = 8;
  const auto source = open_source(config, 4).value();
  std::vector<BatchArrays> batches(static_cast<std::size_t>(leases), BatchArrays(*source.train, kBatch));
  std::vector<char> done(batches.size());
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        for (std::size_t k = t; k < batches.size(); k += threads)
          done[k] =
              source.train
                  ->build({k, static_cast<std::uint32_t>(k / 4), static_cast<std::int64_t>(k % 4) * kBatch, kBatch, 0},
                          batches[k].images, batches[k].labels)
                  .has_value();
      });
  }
  EXPECT_THAT(done, Each(1));
  return batches;
}

TEST(PicturesTest, PixelsDoNotDependOnTheNumberOfThreads) {
  const TemporaryDirectory folder;
  write_folders(folder.path(), 32);
  const auto config = folder_config(folder.path());
  const auto alone = built(config, 1, 12);
  EXPECT_EQ(alone, built(config, 3, 12));
  EXPECT_NE(alone[0].images, alone[4].images);  // another epoch
}

TEST(PicturesTest, AFolderIsReadAsItsSettingsSay) {
  const TemporaryDirectory folder;
  write_folders(folder.path(), 30);
  auto config = folder_config(folder.path());
  const auto source = open_source(config, 1);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->train->size(), 30);
  EXPECT_EQ(source->test->size(), 15);
  EXPECT_EQ(source->train->classes(), 3);
  EXPECT_EQ(source->train->image_shape(), (ImageShape{3, 24, 24}));
  EXPECT_EQ(fingerprint(*source).value(), fingerprint(*open_source(config, 1)).value());

  config.random_resized_crop = false;
  config.resize = 32;
  config.train_samples = 9;  // spread over all classes
  const auto resized = open_source(config, 1).value();
  EXPECT_EQ(resized.train->dataset().shape(), (ImageShape{3, 32, 32}));
  EXPECT_EQ(resized.train->image_shape(), (ImageShape{3, 24, 24}));
  std::map<std::int32_t, int> labels;
  Bytes pixels(3 * 32 * 32);
  for (std::int64_t i = 0; i < 9; ++i) ++labels[resized.train->dataset().read(i, pixels).value()];
  EXPECT_EQ(labels, (std::map<std::int32_t, int>{{0, 3}, {1, 3}, {2, 3}}));
}

TEST(PicturesTest, ValuesAreNormalisedAsImagenets) {
  const TemporaryDirectory folder;
  for (const auto* split : {"train", "test"}) put_picture(folder.path() / split / "a" / "x.png", made_png({8, 8}));
  auto config = folder_config(folder.path());
  config.random_resized_crop = false;
  config.crop = 8;
  config.normalise = true;
  const auto source = open_source(config, 1).value();
  BatchArrays out(*source.test, 1);
  ASSERT_TRUE(source.test->build_range(0, 1, out.images, out.labels));
  EXPECT_NEAR(out.images[9], (made_value(1, 1, 0) / 255.0 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(out.images[2 * 64 + 9], (made_value(1, 1, 2) / 255.0 - 0.406) / 0.225, 1e-5);
  config.channel_mean = {0.1, 0.2, 0.3};
  config.channel_deviation = {1, 1, 0.5};
  const auto given = open_source(config, 1).value();
  ASSERT_TRUE(given.test->build_range(0, 1, out.images, out.labels));
  EXPECT_NEAR(out.images[2 * 64 + 9], (made_value(1, 1, 2) / 255.0 - 0.3) / 0.5, 1e-5);
  config.channel_mean = {0.1};
  const auto wrong = open_source(config, 1);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, core::Errc::config);
}

TEST(PicturesTest, AMeanImageComesFromAFile) {
  const TemporaryDirectory folder;
  write_folders(folder.path(), 6);
  auto config = folder_config(folder.path());
  config.mean = "image";
  const auto refused = open_source(config, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("data.statistics"));
  const auto data = open_dataset(config, Split::train).value();
  const auto measured = measure_statistics(*data).value();
  const auto file = folder.path() / "mean.json";
  ASSERT_TRUE(write_statistics(file, measured, data->shape()));
  config.statistics = file;
  const auto read = statistics_of(config, *data).value();
  EXPECT_EQ(read.channel_mean, measured.channel_mean);
  EXPECT_EQ(read.channel_deviation, measured.channel_deviation);
  EXPECT_EQ(read.image_mean, measured.image_mean);
  EXPECT_TRUE(open_source(config, 1));
  for (const std::string text :
       {"", "[1]", "{\"channel_mean\": [1]}", R"({"channel_mean": [1], "channel_deviation": [1], "image_mean": []})",
        R"({"channel_mean": [1,1,1], "channel_deviation": [1,1,0], "image_mean": []})",
        R"({"channel_mean": [1,1,1], "channel_deviation": [1,1,1e-60], "image_mean": []})",
        R"({"channel_mean": [1,1e60,1], "channel_deviation": [1,1,1], "image_mean": []})"}) {
    write_file(file, text_bytes(text));
    const auto bad = open_source(config, 1);
    ASSERT_FALSE(bad) << text;
    EXPECT_EQ(bad.error().code, core::Errc::data) << bad.error().message;
    EXPECT_THAT(bad.error().message, HasSubstr("mean.json"));
  }
}

TEST(PicturesTest, UnreadablePicturesAreReplacedWithinTheLimit) {
  const TemporaryDirectory folder;
  write_folders(folder.path(), 24);
  const auto bad_file = folder.path() / "train" / "class1" / "4.jpg";
  write_file(bad_file, text_bytes("GIF89a"));
  auto config = folder_config(folder.path());
  config.shuffle = false;
  auto source = open_source(config, 1).value();
  BatchArrays out(*source.train, 24);
  const Lease lease{0, 0, 0, 24, 0};
  const auto failed = source.train->build(lease, out.images, out.labels);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, core::Errc::data);
  EXPECT_THAT(failed.error().message, HasSubstr(bad_file.string() + ": a GIF"));

  config.max_bad = 1;
  source = open_source(config, 1).value();
  ASSERT_TRUE(source.train->build(lease, out.images, out.labels));
  EXPECT_EQ(source.train->bad_samples(), 1);
  // Class 1 has 1, 10, 13, 16, 19, 22, 4, 7 in this order: 4 is sample 8 + 6, and 7 stands for it.
  const auto image = static_cast<std::ptrdiff_t>(source.train->image_shape().size());
  EXPECT_TRUE(
      std::equal(out.images.begin() + 14 * image, out.images.begin() + 15 * image, out.images.begin() + 15 * image));
  ASSERT_TRUE(source.train->build(lease, out.images, out.labels));
  EXPECT_EQ(source.train->bad_samples(), 1);  // counted once

  write_file(folder.path() / "train" / "class2" / "5.jpg", text_bytes("nothing"));
  const auto too_many = source.train->build(lease, out.images, out.labels);
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, HasSubstr("(unreadable samples so far: 2; data.max_bad = 1)"));
}

TEST(PicturesTest, UnreadablePicturesHaveAFingerprintAndNoPartInTheMean) {
  const TemporaryDirectory folder;
  write_folders(folder.path(), 12);
  auto config = folder_config(folder.path());
  write_file(folder.path() / "train" / "class0" / "0.jpg", {});
  const auto damaged = open_source(config, 1).value();
  const auto one = fingerprint(damaged), again = fingerprint(damaged);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one.value(), again.value());

  const auto& data = damaged.train->dataset();
  const auto refused = measure_statistics(data);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("0.jpg: the file is empty"));
  const auto measured = measure_statistics(data, {.samples = 0, .max_bad = 1}).value();
  fs::remove(folder.path() / "train" / "class0" / "0.jpg");
  const auto without = measure_statistics(*open_dataset(config, Split::train).value()).value();
  EXPECT_EQ(measured.image_mean, without.image_mean);
  EXPECT_EQ(measured.channel_deviation, without.channel_deviation);
}

TEST(PicturesTest, OddSizesAreImagesToo) {
  const TemporaryDirectory folder;
  int i = 0;
  for (const auto& size : std::vector<PictureSize>{{1, 1}, {1, 300}, {300, 1}, {2, 3}, {500, 20}})
    for (const auto* split : {"train", "test"}) {
      put_picture(folder.path() / split / "a" / (std::to_string(++i) + ".png"), made_png(size));
      put_picture(folder.path() / split / "a" / (std::to_string(++i) + ".jpg"), made_jpeg(size));
    }
  auto config = folder_config(folder.path());
  for (const bool random : {true, false}) {
    config.random_resized_crop = random;
    const auto source = open_source(config, 1).value();
    BatchArrays out(*source.train, 10);
    const auto training = source.train->build({0, 0, 0, 10, 0}, out.images, out.labels);
    EXPECT_TRUE(training) << training.error().message;
    const auto testing = source.test->build_range(0, 10, out.images, out.labels);
    EXPECT_TRUE(testing) << testing.error().message;
  }
}

TEST(PicturesTest, HugePicturesAreRefusedBeforeTheyTakeMemory) {
  const TemporaryDirectory folder;
  auto huge = made_jpeg({16, 16});
  for (std::size_t i = 0; i + 8 < huge.size(); ++i)
    if (huge[i] == 0xff && huge[i + 1] == 0xc0) {  // the frame's height and width: 20,000
      huge[i + 5] = huge[i + 7] = 0x4e;
      huge[i + 6] = huge[i + 8] = 0x20;
      break;
    }
  for (const auto* split : {"train", "test"}) put_picture(folder.path() / split / "a" / "x.jpg", huge);
  const auto source = open_source(folder_config(folder.path()), 1).value();
  BatchArrays out(*source.train, 1);
  const auto read = source.train->build({0, 0, 0, 1, 0}, out.images, out.labels);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("x.jpg: 20000 x 20000 pixels are more than data.max_pixels"));
}

TEST(PicturesTest, SettingsThatDoNotFitAreNamed) {
  const TemporaryDirectory folder;
  write_folders(folder.path(), 3);
  const auto message = [&](auto change) {
    auto config = folder_config(folder.path());
    change(config);
    const auto source = open_source(config, 1);
    EXPECT_FALSE(source);
    if (source) return std::string{};
    EXPECT_EQ(source.error().code, core::Errc::config);
    return source.error().message;
  };
  EXPECT_THAT(message([](auto& c) { c.crop = 0; }), HasSubstr("data.random_resized_crop needs data.crop"));
  EXPECT_THAT(message([](auto& c) { c.crop = 0, c.random_resized_crop = false; }),
              HasSubstr("set data.crop or data.resize"));
  EXPECT_THAT(message([](auto& c) { c.resize = 20; }), HasSubstr("data.resize is 20 and data.crop 24"));
  EXPECT_THAT(message([](auto& c) { c.name = "synthetic", c.shape = {1, 30, 30}; }), HasSubstr("three channels"));
  EXPECT_THAT(message([](auto& c) { c.name = "synthetic", c.shape = {1, 30}; }), HasSubstr("data.shape has 2 values"));
  EXPECT_THAT(message([](auto& c) { c.name = "synthetic", c.shape = {65'535, 65'535, 3}; }), HasSubstr("too large"));
}

TEST(PicturesTest, ShardsAndFoldersOfTheSamePicturesAreTheSameImages) {
  const TemporaryDirectory folder;
  std::vector<TarEntry> entries;
  for (int i = 0; i < 12; ++i) {
    const auto bytes = made_jpeg({50 + i, 60 - i}, JpegKind::colour, i);
    const auto name = fmt::format("{:02}", i);
    for (const auto* split : {"train", "test"})
      put_picture(folder.path() / split / fmt::format("class{}", i / 4) / (name + ".jpg"), bytes);
    entries.push_back({name + ".jpg", bytes});
    entries.push_back({name + ".cls", text_bytes(std::to_string(i / 4))});
  }
  write_file(folder.path() / "train-0.tar", made_tar({entries.begin(), entries.begin() + 10}));
  write_file(folder.path() / "train-1.tar", made_tar({entries.begin() + 10, entries.end()}));
  write_file(folder.path() / "val-0.tar", made_tar(entries));
  auto config = folder_config(folder.path());
  config.shuffle = false;
  const auto images = [&](const std::string& name) {
    config.name = name;
    config.classes = 3;
    const auto source = open_source(config, 1).value();
    BatchArrays out(*source.train, 12);
    EXPECT_TRUE(source.train->build({0, 2, 0, 12, 0}, out.images, out.labels));
    return std::pair(out, fingerprint(source).value());
  };
  EXPECT_EQ(images("folder"), images("shards"));
}

TEST(PicturesTest, SyntheticImagesNeedNoFile) {
  DataConfig config;
  config.name = "synthetic";
  config.shape = {2, 9, 12};
  config.classes = 300;
  config.train_samples = 50;
  const auto facts = image_facts(config).value();
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->shape, (ImageShape{2, 9, 12}));
  EXPECT_EQ(facts->classes, 300);
  EXPECT_EQ(published_samples(config, Split::train), 50);
  EXPECT_EQ(published_samples(config, Split::test), 1000);
  const auto source = open_source(config, 1).value();
  EXPECT_EQ(source.train->size(), 50);
  EXPECT_EQ(source.train->image_shape(), facts->shape);
  config.shape = {3, 50, 40};
  config.crop = 20;
  config.random_resized_crop = true;
  EXPECT_EQ(image_facts(config).value()->shape, (ImageShape{3, 20, 20}));
  EXPECT_EQ(open_source(config, 1)->train->image_shape(), (ImageShape{3, 20, 20}));
}

TEST(PicturesTest, RealShardsAreRead) {
  DataConfig config;
  config.name = "shards";
  config.path = "../shared/data/cifar10";
  config.crop = 32;
  config.pad = 4;
  if (!fs::exists(config.path)) GTEST_SKIP() << "no " << config.path;
  const auto source = open_source(config, 1);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->train->size(), 50'000);
  EXPECT_EQ(source->test->size(), 10'000);
  BatchArrays out(*source->train, 64);
  EXPECT_TRUE(source->train->build({0, 0, 0, 64, 0}, out.images, out.labels));
  EXPECT_GT(std::set<std::int32_t>(out.labels.begin(), out.labels.end()).size(), 5u);
}

}  // namespace
}  // namespace troupe::data
