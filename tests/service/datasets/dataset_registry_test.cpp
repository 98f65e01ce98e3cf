#include "service/datasets/dataset_registry.hpp"

#include <gtest/gtest.h>

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
}

TEST(DatasetInspectionTest, ADataSetWithoutItsFilesIsAnErrorThatNamesTheFile) {
  const tests::Folder folder;
  const auto facts = inspect({"m", "mnist", folder.path(), 0});
  ASSERT_FALSE(facts.has_value());
  EXPECT_NE(facts.error().message.find(folder.path()), std::string::npos) << facts.error().message;
}

}  // namespace
}  // namespace troupe::service
