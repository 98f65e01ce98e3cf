#include "data/registry.hpp"

#include <set>

#include <gtest/gtest.h>

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

TEST(DatasetRegistry, DataSetsThatMustBeOpenedHaveNoPublishedForm) {
  DataConfig config;
  config.name = "idx";
  EXPECT_FALSE(image_facts(config).value());
  EXPECT_FALSE(published_samples(config, Split::train));
}

}  // namespace
}  // namespace troupe::data
