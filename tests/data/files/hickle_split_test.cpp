#include "data/files/hickle_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::Folder;

std::vector<std::string> names_of(const Folder& folder, const HickleSplit& split) {
  std::vector<std::string> names;
  for (const auto& file : split.files) names.push_back(file.string().substr(folder.path().size() + 1));
  return names;
}

HickleSplit split_of(const Folder& folder, bool train) {
  auto split = hickle_split("hickle", folder.path(), train);
  EXPECT_TRUE(split) << split.error().message;
  return split.value_or(HickleSplit{});
}

TEST(HickleSplitTest, FilesOfThePreprocessingAreFound) {
  const Folder folder;
  for (const auto* name : {"train_hkl_b256_b_256/0001.hkl", "train_hkl_b256_b_256/0000.hkl",
                           "train_hkl_b256_b_256/notes", "val_hkl_b256_b_256/0000.hkl", "labels/train_labels.npy",
                           "labels/train_labels_0.npy", "labels/val_labels.npy", "misc/img_mean.npy", "train.txt"})
    folder.write(name, "");
  const auto train = split_of(folder, true), test = split_of(folder, false);
  EXPECT_THAT(names_of(folder, train), ElementsAre("train_hkl_b256_b_256/0000.hkl", "train_hkl_b256_b_256/0001.hkl"));
  EXPECT_EQ(train.labels, folder.file("labels/train_labels.npy"));
  EXPECT_THAT(names_of(folder, test), ElementsAre("val_hkl_b256_b_256/0000.hkl"));
  EXPECT_EQ(test.labels, folder.file("labels/val_labels.npy"));
}

TEST(HickleSplitTest, FilesMayStandInTheDirectoryItself) {
  const Folder folder;
  for (const auto* name : {"train_1.hkl", "train_0.hkl", "train_labels.npy", "test.hkl", "validation_hkl/0.hkl"})
    folder.write(name, "");
  std::filesystem::create_directory(folder.file("train_empty"));
  const auto train = split_of(folder, true), test = split_of(folder, false);
  EXPECT_THAT(names_of(folder, train), ElementsAre("train_0.hkl", "train_1.hkl"));
  EXPECT_EQ(train.labels, folder.file("train_labels.npy"));
  EXPECT_THAT(names_of(folder, test), ElementsAre("test.hkl"));
  EXPECT_TRUE(test.labels.empty());
}

TEST(HickleSplitTest, ValidationIsAWordOfItsOwn) {
  const Folder folder;
  for (const auto* name : {"validation_hkl/0.hkl", "validation_labels.npy"}) folder.write(name, "");
  const auto test = split_of(folder, false);
  EXPECT_THAT(names_of(folder, test), ElementsAre("validation_hkl/0.hkl"));
  EXPECT_EQ(test.labels, folder.file("validation_labels.npy"));
}

TEST(HickleSplitTest, FilesAreInTheOrderInWhichTheyWereWritten) {
  // make_hkl.py: '%04d' of the batch; the parts of a batch that is cut in four are _00, _10, _01, _11, in two _0, _1.
  const Folder folder;
  for (const auto* name :
       {"train/0000_00.hkl", "train/0000_01.hkl", "train/0000_10.hkl", "train/0000_11.hkl", "train/0001_01.hkl",
        "train/0001_00.hkl", "test/9999_0.hkl", "test/10000_0.hkl", "test/9999_1.hkl", "test/1000_0.hkl"})
    folder.write(name, "");
  EXPECT_THAT(names_of(folder, split_of(folder, true)),
              ElementsAre("train/0000_00.hkl", "train/0000_10.hkl", "train/0000_01.hkl", "train/0000_11.hkl",
                          "train/0001_00.hkl", "train/0001_01.hkl"));
  EXPECT_THAT(names_of(folder, split_of(folder, false)),
              ElementsAre("test/1000_0.hkl", "test/9999_0.hkl", "test/9999_1.hkl", "test/10000_0.hkl"));
  folder.write("train/0001_20.hkl", "");  // numbers of another kind: plain order
  EXPECT_THAT(names_of(folder, split_of(folder, true)),
              ElementsAre("train/0000_00.hkl", "train/0000_01.hkl", "train/0000_10.hkl", "train/0000_11.hkl",
                          "train/0001_00.hkl", "train/0001_01.hkl", "train/0001_20.hkl"));
}

TEST(HickleSplitTest, MissingFilesAreNamed) {
  const Folder folder;
  folder.write("train_hkl/0000.h5", "");
  const auto missing = hickle_split("hickle", folder.path(), false);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Errc::data);
  EXPECT_THAT(missing.error().message,
              HasSubstr("data set 'hickle' is missing: no file test*/*.hkl or val*/*.hkl or validation*/*.hkl in " +
                        folder.path() + " (it has 1 entry: train_hkl)"));
}

}  // namespace
}  // namespace troupe::data
