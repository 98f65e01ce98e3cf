#include "data/registry.hpp"

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

}  // namespace
}  // namespace troupe::data
