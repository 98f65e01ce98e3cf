#include "nn/checkpoint/metered_files.hpp"

#include <cerrno>

#include <gtest/gtest.h>

#include "memory_files.hpp"

namespace troupe::nn {
namespace {

TEST(MeteredFiles, CountEveryCallThatHasEndedAndEveryPieceOfALongWrite) {
  MemoryFiles disk;
  MeteredFiles files(disk);
  const std::vector<std::byte> bytes(3 * MeteredFiles::kPieceBytes + 1, std::byte{7});
  auto before = files.calls().load();
  const auto ended = [&] { return files.calls() - std::exchange(before, files.calls()); };
  ASSERT_TRUE(files.create_directories("a"));
  const auto file = files.create("a/b").value();
  EXPECT_EQ(ended(), 2U);
  ASSERT_TRUE(files.write(file, bytes, "a/b"));
  EXPECT_EQ(ended(), 4U);
  ASSERT_TRUE(files.write(file, {}, "a/b"));
  ASSERT_TRUE(files.sync(file, "a/b"));
  ASSERT_TRUE(files.close(file, "a/b"));
  ASSERT_TRUE(files.rename("a/b", "a/c"));
  ASSERT_TRUE(files.sync_directory("a"));
  EXPECT_EQ(ended(), 5U);
  EXPECT_EQ(files.read("a/c").value(), bytes);
  EXPECT_EQ(files.list("a").value(), std::vector<std::string>{"c"});
  ASSERT_TRUE(files.remove("a/c"));
  EXPECT_EQ(ended(), 3U);
}

TEST(MeteredFiles, AWriteEndsWithThePieceThatFails) {
  MemoryFiles disk;
  MeteredFiles files(disk);
  ASSERT_TRUE(files.create_directories("a"));
  const auto file = files.create("a/b").value();
  const std::vector<std::byte> bytes(3 * MeteredFiles::kPieceBytes);
  disk.fail_at(2, ENOSPC, false);
  const auto written = files.write(file, bytes, "a/b");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, core::Errc::no_space);
  EXPECT_LT(disk.bytes("a/b").size(), 2 * MeteredFiles::kPieceBytes);
}

}  // namespace
}  // namespace troupe::nn
