#include "data/config.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/registry.hpp"
#include "tests/data/idx_files.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using testing::ElementsAre;
using testing::HasSubstr;

core::Result<DataConfig> parse(const std::string& text) {
  core::Schema schema;
  schema.add(data_table());
  auto config = core::Config::parse(schema, "[data]\n" + text, "test.toml", {});
  if (!config) return tl::unexpected(config.error());
  return config->get(data_table());
}

DataConfig glyphs(std::int64_t train_samples, std::int64_t test_samples) {
  DataConfig config;
  config.name = "glyphs";
  config.train_samples = train_samples;
  config.test_samples = test_samples;
  return config;
}

TEST(DataConfigTest, ReadsItsSection) {
  const auto config = parse(
      "name = \"idx\"\npath = \"somewhere\"\nbatch = [64, 16]\nprefetch = 2\nshuffle = false\nmean = \"image\"\ncrop = "
      "24\nmirror = true\n");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->name, "idx");
  EXPECT_EQ(config->path, "somewhere");
  EXPECT_THAT(config->batch, ElementsAre(64, 16));
  EXPECT_EQ(config->prefetch, 2);
  EXPECT_FALSE(config->shuffle);
  const auto options = preprocess_options(*config);
  EXPECT_EQ(options.mean, Mean::image);
  EXPECT_EQ(options.crop, 24);
  EXPECT_TRUE(options.mirror);
}

TEST(DataConfigTest, HasDefaultsForAllButTheName) {
  const auto config = parse("name = \"glyphs\"\n");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_THAT(config->batch, ElementsAre(64));
  EXPECT_EQ(config->prefetch, 4);
  EXPECT_EQ(config->decode_threads, 1);
  EXPECT_TRUE(config->shuffle);
  EXPECT_FALSE(config->drop_tail);
}

TEST(DataConfigTest, ALoaderHoldsOneBatchMoreThanItHasDecoders) {
  DataConfig config;
  EXPECT_EQ(config.batches_ahead(1), 4);  // prefetch
  config.decode_threads = 14;
  EXPECT_EQ(config.batches_ahead(1), 15);
  EXPECT_EQ(config.batches_ahead(3), 6);
  EXPECT_EQ(config.batches_ahead(8), 4);
  config.prefetch = 1;
  EXPECT_EQ(config.batches_ahead(8), 3);
  EXPECT_EQ(config.batches_ahead(14), 1);  // two buffers keep one decoder busy
  EXPECT_EQ(config.batches_ahead(0), 15);
}

TEST(DataConfigTest, RefusesValuesOutOfRange) {
  for (const std::string text : {"batch = 0", "batch = [64, 0]", "prefetch = 0", "decode_threads = 0", "crop = -1",
                                 "mean = \"median\"", "classes = 1"}) {
    const auto config = parse("name = \"glyphs\"\n" + text + "\n");
    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_EQ(config.error().code, Errc::config) << text;
  }
  EXPECT_FALSE(parse("name = \"imagenet\"\n").has_value());
}

TEST(DataConfigTest, OneBatchForAllWorkersOrOneEach) {
  DataConfig config;
  EXPECT_THAT(*batches_per_worker(config, 3), ElementsAre(64, 64, 64));
  config.batch = {64, 16};
  EXPECT_THAT(*batches_per_worker(config, 2), ElementsAre(64, 16));
  const auto wrong = batches_per_worker(config, 3);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, Errc::config);
  EXPECT_THAT(wrong.error().message, HasSubstr("data.batch has 2 values for 3 workers"));
}

TEST(OpenDatasetTest, KnowsEveryKindByName) {
  const TemporaryDirectory empty;
  for (const auto& kind : dataset_kinds()) {
    EXPECT_FALSE(kind.description.empty());
    DataConfig config = glyphs(1, 1);
    config.name = kind.name;
    config.path = empty.path();
    const auto opened = open_dataset(config, Split::train);
    EXPECT_TRUE(opened.has_value() || opened.error().code == Errc::data)
        << kind.name;  // known: at most its files are missing
  }
}

TEST(OpenDatasetTest, UnknownNamesAndMissingPathsAreConfigErrors) {
  DataConfig config;
  config.name = "imagenet";
  const auto unknown = open_dataset(config, Split::train);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Errc::config);
  EXPECT_THAT(unknown.error().message, HasSubstr("mnist | fashion-mnist | "));
  for (const auto& row : dataset_registry()) EXPECT_THAT(unknown.error().message, HasSubstr(std::string(row.name)));
  config.name = "idx";
  const auto pathless = open_dataset(config, Split::train);
  ASSERT_FALSE(pathless.has_value());
  EXPECT_EQ(pathless.error().code, Errc::config);
}

TEST(OpenDatasetTest, PublishedNamesKeepTheirForm) {
  const TemporaryDirectory directory;
  write_data_set(directory.path());  // images of 2 × 3
  DataConfig config;
  config.path = directory.path();
  for (const std::string name : {"mnist", "fashion-mnist"}) {
    config.name = name;
    const auto opened = open_dataset(config, Split::train);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Errc::data);
    EXPECT_THAT(opened.error().message,
                HasSubstr("images are 2 x 3, and " + name + "'s are 28 x 28: set data.name = \"idx\""));
  }
}

TEST(ImageFactsTest, AgreeWithTheOpenedDataSet) {
  DataConfig config = glyphs(10, 10);
  for (const std::int64_t crop : {0, 24}) {
    config.crop = crop;
    const auto facts = image_facts(config).value();
    const auto source = open_source(config, 1);
    ASSERT_TRUE(facts.has_value() && source.has_value());
    EXPECT_EQ(facts->shape, source->train->image_shape());
    EXPECT_EQ(facts->classes, source->train->classes());
  }
  config.name = "idx";
  EXPECT_FALSE(image_facts(config).value().has_value());
}

TEST(ImageFactsTest, ACropThatOpeningRefusesIsRefusedWithoutIt) {
  DataConfig config = glyphs(10, 10);
  for (const std::int64_t pad : {0, 2}) {
    config.pad = pad;
    config.crop = 28 + 2 * pad;
    EXPECT_TRUE(image_facts(config));
    EXPECT_TRUE(open_source(config, 1));
    ++config.crop;
    const auto facts = image_facts(config);
    const auto source = open_source(config, 1);
    ASSERT_FALSE(facts);
    ASSERT_FALSE(source);
    EXPECT_EQ(facts.error().code, Errc::config);
    EXPECT_EQ(facts.error().message, source.error().message);
  }
}

TEST(PublishedSamplesTest, AreThePublishedOnesUpToTheLimit) {
  DataConfig config;
  config.name = "glyphs";
  EXPECT_EQ(published_samples(config, Split::train), 60'000);
  config.name = "cifar10";
  EXPECT_EQ(published_samples(config, Split::train), 50'000);
  EXPECT_EQ(published_samples(config, Split::test), 10'000);
  config.train_samples = 700;
  config.test_samples = 20'000;
  EXPECT_EQ(published_samples(config, Split::train), 700);
  EXPECT_EQ(published_samples(config, Split::test), 10'000);
  config.name = "idx";
  EXPECT_FALSE(published_samples(config, Split::train).has_value());
}

TEST(OpenDatasetTest, LimitsEachSplit) {
  EXPECT_EQ((*open_dataset(glyphs(30, 20), Split::train))->size(), 30);
  EXPECT_EQ((*open_dataset(glyphs(30, 20), Split::test))->size(), 20);
}

TEST(OpenDatasetTest, AnEpochsOrderHas32BitsPerSample) {
  DataConfig config;
  config.name = "synthetic";
  config.shape = {1, 2, 2};
  config.train_samples = config.test_samples = 4'294'967'295;
  EXPECT_TRUE(open_dataset(config, Split::train));
  ++config.test_samples;
  const auto refused = open_dataset(config, Split::test);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::config);
  EXPECT_THAT(refused.error().message,
              HasSubstr("has 4294967296 samples, and a split can have 4294967295: lower data.test_samples"));
}

TEST(OpenDatasetTest, GlyphsFollowDataSeed) {
  DataConfig config = glyphs(1, 1);
  Bytes one(784), two(784), again(784);
  (void)(*open_dataset(config, Split::train))->read(0, one);
  (void)(*open_dataset(config, Split::train))->read(0, again);
  config.seed = 2;
  (void)(*open_dataset(config, Split::train))->read(0, two);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, two);
}

TEST(OpenSourceTest, BothSplitsUseTheTrainingSplitsStatistics) {
  const TemporaryDirectory directory;
  write_data_set(directory.path());
  DataConfig config;
  config.name = "idx";
  config.path = directory.path();
  config.shuffle = false;
  const auto source = open_source(config, 1);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  EXPECT_EQ(source->train->size(), 5);
  EXPECT_EQ(source->test->size(), 3);
  EXPECT_EQ(source->train->image_shape(), (ImageShape{1, 2, 3}));
  EXPECT_EQ(source->train->classes(), 10);
  // Training bytes are 10 i + p with i < 5 and p < 6: mean 20 + 2.5. Byte 20 of test sample 2 is (20 − 22.5) / 255.
  std::vector<float> images(6);
  std::vector<std::int32_t> labels(1);
  ASSERT_TRUE(source->test->build_range(2, 1, images, labels).has_value());
  EXPECT_NEAR(images[0], -2.5 / 255, 1e-7);
  EXPECT_EQ(labels[0], 2);
}

TEST(OpenSourceTest, SplitsOfDifferentShapesAreRefused) {
  const TemporaryDirectory directory;
  write_data_set(directory.path());
  write_file(directory.path() / "t10k-images-idx3-ubyte",
             big_endian(0x803) + big_endian(3) + big_endian(1) + big_endian(1) + Bytes{0, 0, 0});
  DataConfig config;
  config.name = "idx";
  config.path = directory.path();
  const auto source = open_source(config, 1);
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().code, Errc::data);
  EXPECT_THAT(source.error().message, HasSubstr("training images are 1 x 2 x 3 and test images 1 x 1 x 1"));
}

TEST(OpenSourceTest, AMissingDataSetIsADataError) {
  DataConfig config;
  config.name = "mnist";
  config.path = "no/such/directory";
  const auto source = open_source(config, 1);
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().code, Errc::data);
}

TEST(OpenSourceTest, ACropThatDoesNotFitIsAConfigError) {
  DataConfig config = glyphs(10, 10);
  config.crop = 29;
  const auto source = open_source(config, 1);
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().code, Errc::config);
}

}  // namespace
}  // namespace troupe::data
