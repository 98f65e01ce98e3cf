#include "data/files/whole_file.hpp"

#include <filesystem>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "data/statistics.hpp"
#include "tests/folder.hpp"

namespace troupe::data {
namespace {

TEST(WholeFileTest, FoldersAreMadeAndAFileIsReplaced) {
  const tests::Folder folder;
  const std::filesystem::path path = folder.file("a/b/name.txt");
  for (const std::string text : {"first", "second"}) {
    ASSERT_TRUE(write_whole(path, std::as_bytes(std::span(text))));
    EXPECT_EQ(folder.read("a/b/name.txt"), text);
  }
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
}

TEST(WholeFileTest, NothingStaysOfAFileThatCannotHaveItsName) {
  const tests::Folder folder;
  const std::filesystem::path path = folder.file("mean.json");
  std::filesystem::create_directories(path / "inside");
  const auto refused = write_statistics(path, {{0.5}, {0.25}, {}}, {1, 2, 2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::io) << refused.error().message;
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
  EXPECT_TRUE(std::filesystem::exists(path / "inside"));
}

}  // namespace
}  // namespace troupe::data
