#include "service/datasets/dataset_registry.hpp"

#include <gtest/gtest.h>

#include "service/datasets/sample_reader.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/folder.hpp"

namespace troupe::service {
namespace {

TEST(DatasetRegistryTest, DataSetsAreKnownAfterARestart) {
  const tests::Folder folder;
  const auto file = folder.file("datasets.json");
  folder.write("photos/a/x.png", "");
  const DatasetEntry photos{"größe", "folder", folder.file("photos"), 32}, drawn{"digits", "glyphs", "", 0};
  {
    const auto registry = DatasetRegistry::open(file);
    ASSERT_TRUE(registry.has_value());
    for (const auto& entry : {photos, drawn}) {
      const auto added = (*registry)->add(entry);
      EXPECT_TRUE(added.has_value()) << added.error().message;
    }
    EXPECT_EQ((*registry)->add(drawn).error().code, core::Errc::config) << "the name is taken";
  }
  const auto registry = DatasetRegistry::open(file);
  ASSERT_TRUE(registry.has_value());
  EXPECT_EQ((*registry)->list(), (std::vector<DatasetEntry>{drawn, photos}));
  EXPECT_EQ((*registry)->find("größe"), photos);
  EXPECT_TRUE((*registry)->remove("digits").value());
  EXPECT_FALSE((*registry)->remove("digits").value());
  EXPECT_EQ((*registry)->list().size(), 1U);
}

TEST(DatasetRegistryTest, EntriesThatCannotBeAreRefused) {
  const tests::Folder folder;
  const auto registry = DatasetRegistry::open(folder.file("datasets.json"));
  ASSERT_TRUE(registry.has_value());
  for (const auto& bad : {DatasetEntry{"", "glyphs", "", 0}, DatasetEntry{"a/b", "glyphs", "", 0},
                          DatasetEntry{"a b", "glyphs", "", 0}, DatasetEntry{"a", "glypsh", "", 0},
                          DatasetEntry{"a", "mnist", folder.file("nowhere"), 0}, DatasetEntry{"a", "mnist", "", 0}}) {
    const auto added = (*registry)->add(bad);
    ASSERT_FALSE(added.has_value()) << bad.name << " " << bad.kind;
    EXPECT_EQ(added.error().code, core::Errc::config);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("datasets.json")));
}

TEST(DatasetRegistryTest, AFileThatIsNoListIsAnError) {
  const tests::Folder folder;
  const auto registry = DatasetRegistry::open(folder.write("datasets.json", "{\"datasets\": [1]}"));
  ASSERT_FALSE(registry.has_value());
  EXPECT_EQ(registry.error().code, core::Errc::corrupt);
}

TEST(DatasetInspectionTest, ADrawnDataSetHasItsFormAndItsSamplesArePictures) {
  const DatasetEntry glyphs{"digits", "glyphs", "", 0};
  const auto facts = inspect(glyphs);
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  EXPECT_EQ(facts->classes.size(), 10U);
  EXPECT_GT(facts->train, facts->test);
  SampleReader samples;
  const auto sample_png = [&](const DatasetEntry& entry, std::int64_t index) { return samples.png(entry, index, {}); };
  const auto png = sample_png(glyphs, 0), other = sample_png(glyphs, 1);
  ASSERT_TRUE(png.has_value() && *png && other.has_value() && *other);
  EXPECT_EQ((*png)->substr(0, 8), "\x89PNG\r\n\x1a\n");
  // The header of a PNG: after signature, length and "IHDR" width and height, big-endian.
  const auto number = [&](std::size_t at) {
    std::int64_t value = 0;
    for (std::size_t k = 0; k < 4; ++k) value = value * 256 + static_cast<unsigned char>((**png)[at + k]);
    return value;
  };
  EXPECT_EQ(number(16), facts->width);
  EXPECT_EQ(number(20), facts->height);
  EXPECT_NE(**png, **other);
  EXPECT_FALSE(sample_png(glyphs, facts->train)->has_value()) << "behind the last one";
  EXPECT_FALSE(sample_png(glyphs, -1)->has_value());
  const auto behind = sample_png(glyphs, 5'000);
  ASSERT_TRUE(behind.has_value() && *behind) << "one that the first look did not draw";
  EXPECT_NE(**behind, **png);
}

class SampleReaderTest : public testing::Test {
 protected:
  DatasetEntry written(const std::string& name) {
    std::filesystem::create_directory(folder_.file(name));
    data::write_data_set(folder_.file(name));
    return {name, "idx", folder_.file(name), 0};
  }
  bool has(const DatasetEntry& entry, SampleReader::Time now) {
    const auto png = samples_.png(entry, 4, now);
    return png && *png;
  }
  const tests::Folder folder_;
  SampleReader samples_;
  const SampleReader::Time begin_{std::chrono::seconds(1'000)};
};

/// Once the files are gone only an open data set has samples.
TEST_F(SampleReaderTest, ADataSetIsOpenedOnceAndClosedWhenNobodyAsks) {
  const auto entry = written("a");
  EXPECT_FALSE(samples_.close_idle(begin_).has_value()) << "nothing is open";
  EXPECT_TRUE(has(entry, begin_));
  EXPECT_FALSE(samples_.png(entry, 5, begin_)->has_value()) << "behind the last one";
  std::filesystem::remove_all(entry.path);
  const auto later = begin_ + SampleReader::kKept - std::chrono::seconds(1);
  EXPECT_TRUE(samples_.close_idle(later).has_value());
  EXPECT_TRUE(has(entry, later));
  EXPECT_TRUE(samples_.close_idle(begin_ + SampleReader::kKept).has_value()) << "it was asked for meanwhile";
  EXPECT_TRUE(has(entry, later));
  EXPECT_FALSE(samples_.close_idle(later + SampleReader::kKept).has_value());
  EXPECT_FALSE(has(entry, later + SampleReader::kKept));
}

TEST_F(SampleReaderTest, OnlyTheLastOnesAskedForAreOpen) {
  const auto a = written("a"), b = written("b"), c = written("c");
  for (const auto& entry : {a, b, a, c}) EXPECT_TRUE(has(entry, begin_)) << entry.name;
  for (const auto& entry : {a, b, c}) std::filesystem::remove_all(entry.path);
  EXPECT_TRUE(has(a, begin_));
  EXPECT_TRUE(has(c, begin_));
  EXPECT_FALSE(has(b, begin_));
}

TEST_F(SampleReaderTest, ANameThatMeansAnotherDataSetNowIsOpenedAnew) {
  auto entry = written("a");
  EXPECT_TRUE(has(entry, begin_));
  entry.path = folder_.file("nowhere");
  EXPECT_FALSE(has(entry, begin_));
}

TEST(DatasetInspectionTest, ADataSetWithoutItsFilesIsAnErrorThatNamesTheFile) {
  const tests::Folder folder;
  const auto facts = inspect({"m", "mnist", folder.path(), 0});
  ASSERT_FALSE(facts.has_value());
  EXPECT_NE(facts.error().message.find(folder.path()), std::string::npos) << facts.error().message;
}

}  // namespace
}  // namespace troupe::service
