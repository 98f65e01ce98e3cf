#include "nn/file_system.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/nn/memory_files.hpp"

namespace troupe::nn {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A directory of its own for each test, gone afterwards.
class SystemFilesTest : public testing::Test {
 protected:
  SystemFilesTest()
      : directory_(std::filesystem::temp_directory_path() / ("troupe-files-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~SystemFilesTest() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::filesystem::path directory_;
  FileSystem& files_ = system_files();
};

TEST_F(SystemFilesTest, ReplaceFilePutsAllPartsInPlace) {
  const auto first = bytes_of("one ");
  const auto second = bytes_of("two");
  const std::array<Bytes, 3> parts{first, Bytes{}, second};
  ASSERT_TRUE(replace_file(files_, directory_, "f", parts));
  EXPECT_EQ(files_.read(path("f")).value(), bytes_of("one two"));
  const std::array<Bytes, 1> shorter{second};
  ASSERT_TRUE(replace_file(files_, directory_, "f", shorter));
  EXPECT_EQ(files_.read(path("f")).value(), bytes_of("two"));
  EXPECT_EQ(files_.list(directory_).value(), std::vector<std::string>{"f"});
}

TEST_F(SystemFilesTest, ErrorsNameThePath) {
  const std::string missing = path("a/b");
  const auto error = [](const auto& result) {
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().code, core::Errc::io);
    return result.error().message;
  };
  EXPECT_EQ(error(files_.create(missing)), "cannot create " + missing + ": No such file or directory");
  EXPECT_EQ(error(files_.read(missing)), "cannot open " + missing + ": No such file or directory");
  EXPECT_EQ(error(files_.read(directory_)), "cannot read " + directory_.string() + ": not a regular file");
  EXPECT_EQ(error(files_.list(missing)), "cannot list directory " + missing + ": No such file or directory");
  EXPECT_EQ(error(files_.sync_directory(missing)), "cannot open directory " + missing + ": No such file or directory");
  EXPECT_EQ(error(files_.rename(missing, path("c"))),
            "cannot rename a file to " + path("c") + ": No such file or directory");
  EXPECT_EQ(error(files_.write(-1, bytes_of("x"), "f")), "cannot write f: Bad file descriptor");
  EXPECT_EQ(error(files_.sync(-1, "f")), "cannot sync f: Bad file descriptor");
  EXPECT_EQ(error(files_.close(-1, "f")), "cannot close f: Bad file descriptor");
  EXPECT_EQ(error(files_.remove(directory_)), "cannot remove " + directory_.string() + ": Is a directory");
  const int file = files_.create(path("f")).value();
  EXPECT_EQ(error(files_.create(path("f"))), "cannot create " + path("f") + ": File exists");
  EXPECT_EQ(error(files_.create_directories(path("f"))), "cannot create directory " + path("f") + ": Not a directory");
  EXPECT_TRUE(files_.close(file, path("f")));
}

TEST_F(SystemFilesTest, DirectoriesAndRemoval) {
  EXPECT_TRUE(files_.create_directories(path("x/y")));
  EXPECT_TRUE(files_.create_directories(path("x/y")));
  EXPECT_TRUE(files_.remove(path("nothing")));
  EXPECT_TRUE(files_.sync_directory(path("x")));
}

TEST(ReplaceFile, ALeftoverTemporaryIsNotInTheWay) {
  MemoryFiles files;
  ASSERT_TRUE(files.create("d/f.tmp"));
  const auto text = bytes_of("new");
  const std::array<Bytes, 1> parts{text};
  EXPECT_TRUE(replace_file(files, "d", "f", parts));
  EXPECT_EQ(files.bytes("d/f"), text);
  EXPECT_FALSE(files.exists("d/f.tmp"));
}

TEST(ReplaceFile, TheFirstFailureIsTheOneReported) {
  MemoryFiles files;
  const auto text = bytes_of("new");
  const std::array<Bytes, 1> parts{text};
  files.fail_at(3, ENOSPC, true);  // the write, and everything after it
  const auto replaced = replace_file(files, "d", "f", parts);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, core::Errc::no_space);
  EXPECT_EQ(replaced.error().message.rfind("cannot write d/f.tmp: ", 0), 0u) << replaced.error().message;
}

}  // namespace
}  // namespace troupe::nn
