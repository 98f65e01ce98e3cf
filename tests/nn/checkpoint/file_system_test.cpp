#include "nn/checkpoint/file_system.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/nn/checkpoint/memory_files.hpp"

namespace troupe::nn {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A directory for each test, removed afterwards.
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

TEST_F(SystemFilesTest, CreatingAndRemovingTwiceSucceeds) {
  EXPECT_TRUE(files_.create_directories(path("x/y")));
  EXPECT_TRUE(files_.create_directories(path("x/y")));
  EXPECT_TRUE(files_.remove(path("nothing")));
  EXPECT_TRUE(files_.sync_directory(path("x")));
}

TEST(ReplaceFile, TwoWritersOfOneNameUseDifferentTemporaries) {
  MemoryFiles files;
  const auto first = bytes_of("first");
  const auto second = bytes_of("second");
  const std::array<Bytes, 1> mine{first}, theirs{second};
  files.set_hook([&](const std::string& call) {
    // Just before the first writer renames its file into place, another one writes the same file completely.
    if (!call.starts_with("rename ")) return;
    EXPECT_TRUE(replace_file(files, "d", "f", theirs));
    EXPECT_EQ(files.bytes("d/f"), second);
  });
  EXPECT_TRUE(replace_file(files, "d", "f", mine));
  EXPECT_EQ(files.bytes("d/f"), first);
  EXPECT_EQ(files.list("d").value(), std::vector<std::string>{"f"});
}

TEST(ReplaceFile, ATemporaryNamesTheProcessThatWritesIt) {
  MemoryFiles files;
  const std::array<Bytes, 1> parts{};
  ASSERT_TRUE(replace_file(files, "d", "f", parts));
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  const auto& created = files.log().front();
  EXPECT_EQ(created.rfind("create d/f." + std::string(host.data()).substr(0, 32) + "-" + std::to_string(::getpid()), 0),
            0u)
      << created;
  EXPECT_TRUE(created.ends_with(kTemporarySuffix)) << created;
}

TEST_F(SystemFilesTest, ReplaceByCopyReplacesAndKeepsTheSource) {
  std::string text(3'000'001, 'x');  // several pieces
  for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>('a' + i / 1000 % 26);
  const auto large = bytes_of(text);
  const std::array<Bytes, 1> parts{large};
  ASSERT_TRUE(replace_file(files_, directory_, "from", parts));
  for (const auto* name : {"to", "to"}) {  // the second time it exists already
    ASSERT_TRUE(replace_by_copy(files_, path("from"), directory_, name));
    EXPECT_EQ(files_.read(path(name)).value(), large);
  }
  EXPECT_EQ(files_.list(directory_).value(), (std::vector<std::string>{"from", "to"}));
  const auto missing = replace_by_copy(files_, path("none"), directory_, "to");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "cannot open " + path("none") + ": No such file or directory");
  EXPECT_EQ(files_.read(path("to")).value(), large);
  EXPECT_EQ(files_.list(directory_).value(), (std::vector<std::string>{"from", "to"}));
}

TEST(ReplaceByCopy, AfterAnyFailedCallOldOrNewIsWhole) {
  const auto old_text = bytes_of("old"), new_text = bytes_of("new");
  int failures = 0;
  for (int n = 1;; ++n) {
    MemoryFiles files;
    for (const auto& [name, text] : {std::pair{"from", &new_text}, {"to", &old_text}}) {
      const std::array<Bytes, 1> parts{*text};
      ASSERT_TRUE(replace_file(files, "d", name, parts));
    }
    files.fail_at(n, ENOSPC, false);
    const auto copied = replace_by_copy(files, "d/from", "d", "to");
    if (!files.failed()) break;
    ++failures;
    EXPECT_FALSE(copied) << n;
    files.heal();
    EXPECT_EQ(files.list("d").value(), (std::vector<std::string>{"from", "to"})) << n;
    EXPECT_TRUE(files.bytes("d/to") == old_text || files.bytes("d/to") == new_text) << n;
    EXPECT_TRUE(replace_by_copy(files, "d/from", "d", "to")) << n;
    EXPECT_EQ(files.bytes("d/to"), new_text) << n;
    EXPECT_TRUE(files.violations().empty()) << n;
  }
  EXPECT_EQ(failures, 7);  // read, create, write, sync, close, rename, sync_directory
}

TEST(RemoveTemporaries, LeavesOtherFiles) {
  MemoryFiles files;
  for (const auto* name : {"d/f", "d/f.tmp", "d/f.h-1-00000000-2.tmp", "d/tmp", "e/f.tmp"})
    ASSERT_TRUE(files.create(name));
  ASSERT_TRUE(remove_temporaries(files, "d"));
  EXPECT_EQ(files.list("d").value(), (std::vector<std::string>{"f", "tmp"}));
  EXPECT_TRUE(files.exists("e/f.tmp"));
}

TEST(ReplaceFile, TheFirstFailureIsTheOneReported) {
  MemoryFiles files;
  const auto text = bytes_of("new");
  const std::array<Bytes, 1> parts{text};
  files.fail_at(2, ENOSPC, true);  // the write, and every later call
  const auto replaced = replace_file(files, "d", "f", parts);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, core::Errc::no_space);
  EXPECT_EQ(replaced.error().message.rfind("cannot write d/f.", 0), 0u) << replaced.error().message;
}

}  // namespace
}  // namespace troupe::nn
