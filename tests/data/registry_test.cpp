#include "data/registry.hpp"

#include <array>
#include <set>

#include <gtest/gtest.h>

#include "core/loading/module.hpp"

namespace troupe::data {
namespace {

TEST(DatasetRegistry, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const auto& row : dataset_registry()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_dataset(row.name), &row);
    EXPECT_FALSE(row.description.empty()) << row.name;
    EXPECT_NE(row.open, nullptr) << row.name;
  }
  EXPECT_EQ(find_dataset("no such data set"), nullptr);
}

TEST(DatasetRegistry, PublishedFormAgreesWithTheReader) {
  const auto* const row = find_dataset("glyphs");
  ASSERT_TRUE(row && row->published);
  DataConfig config;
  config.name = "glyphs";
  const auto opened = row->open(config, Split::test, 0);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->shape(), row->published->shape);
  EXPECT_EQ((*opened)->classes(), row->published->classes);
  EXPECT_EQ((*opened)->size(), row->published->test_samples);
}

TEST(DatasetRegistry, HickleWithoutItsLibraryIsRefused) {
  if (core::find_module("hdf5")) GTEST_SKIP() << "this build has HDF5";
  DataConfig config;
  config.name = "hickle";
  const auto opened = open_dataset(config, Split::train);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Errc::config);
  EXPECT_EQ(
      opened.error().message,
      "data.name = \"hickle\": this build has no HDF5 (package libhdf5-dev): run scripts/setup and scripts/build");
}

TEST(DatasetRegistry, DataSetsThatMustBeOpenedHaveNoPublishedForm) {
  DataConfig config;
  config.name = "idx";
  EXPECT_FALSE(image_facts(config).value());
  EXPECT_FALSE(published_samples(config, Split::train));
}

DataConfig config_of_numbers(std::int64_t samples) {
  DataConfig config;
  config.name = "numbers";
  config.train_samples = samples;
  return config;
}

TEST(SampleNumbers, TheLabelOfASampleIsItsNumber) {
  const auto numbers = open_dataset(config_of_numbers(1000), Split::train);
  ASSERT_TRUE(numbers) << numbers.error().message;
  EXPECT_EQ((*numbers)->size(), 1000);
  EXPECT_EQ((*numbers)->shape(), (ImageShape{1, 1, 1}));
  EXPECT_EQ((*numbers)->classes(), 1000);
  std::array<std::uint8_t, 1> pixel{9};
  for (const std::int64_t sample : {0, 7, 999}) {
    EXPECT_EQ((*numbers)->read(sample, pixel).value(), sample);
    EXPECT_EQ((*numbers)->label(sample).value(), sample);
    EXPECT_EQ(pixel[0], 0);
  }
}

TEST(SampleNumbers, TheTestSplitIsOneSample) {
  EXPECT_EQ(open_dataset(config_of_numbers(1000), Split::test).value()->size(), 1);
}

TEST(SampleNumbers, ThereAreAsManyAsAnIntCounts) {
  EXPECT_EQ(open_dataset(config_of_numbers(2147483647), Split::train).value()->size(), 2147483647);
  for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{2147483648}}) {
    EXPECT_EQ(open_dataset(config_of_numbers(samples), Split::train).error().code, core::Errc::config) << samples;
    EXPECT_EQ(image_facts(config_of_numbers(samples)).error().code, core::Errc::config) << samples;
  }
  EXPECT_EQ(published_samples(config_of_numbers(50), Split::train), 50);
}

}  // namespace
}  // namespace troupe::data
