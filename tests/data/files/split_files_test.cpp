#include "data/files/split_files.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/idx_files.hpp"

namespace troupe::data {
namespace {

using testing::HasSubstr;

/// The name of the file that is chosen, or the error.
std::string chosen(const TemporaryDirectory& folder, bool train) {
  const auto file = split_file("csv", folder.path(), train, ".csv");
  if (file) return file->filename().string();
  EXPECT_EQ(file.error().code, core::Errc::data);
  return file.error().message;
}

TEST(SplitFile, OneWithTheUsualNameCounts) {
  const TemporaryDirectory folder;
  for (const char* name : {"train (1).csv", "train-old.csv", "train.csv", "val.csv", "validation.csv"})
    write_file(folder.path() / name, {1});
  EXPECT_EQ(chosen(folder, true), "train.csv");
  EXPECT_EQ(chosen(folder, false), "val.csv");
}

TEST(SplitFile, OneOfAnotherNameCountsWhereItIsTheOnlyOne) {
  const TemporaryDirectory folder;
  EXPECT_THAT(chosen(folder, true), HasSubstr("no file train.csv in "));
  EXPECT_THAT(chosen(folder, false), HasSubstr("no file test.csv or val.csv or validation.csv in "));
  write_file(folder.path() / "train-a.csv", {1});
  std::filesystem::create_directory(folder.path() / "train.csv");
  EXPECT_EQ(chosen(folder, true), "train-a.csv");
  write_file(folder.path() / "train-b.csv", {1});
  EXPECT_THAT(chosen(folder, true), HasSubstr("has 2 files train*.csv: name the one that counts train.csv"));
}

}  // namespace
}  // namespace troupe::data
