#include "transport/security/private_file.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::security {
namespace {

TEST(PrivateFile, IsReplacedAsAWholeWithItsPermissions) {
  const tests::Folder directory;
  const std::string path = directory.write("key", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_TRUE(replace_file(path, "new", kForOwner));
  EXPECT_EQ(directory.read("key"), "new");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(directory.entries(), 1u);  // no temporary file
  EXPECT_EQ(read_file(path).value(), "new");
}

TEST(PrivateFile, AFailureLeavesNothing) {
  const tests::Folder directory;
  EXPECT_EQ(replace_file(directory.file("none/key"), "x", kForOwner).error().code, core::Errc::io);
  ASSERT_TRUE(std::filesystem::create_directory(directory.file("taken")));
  directory.write("taken/inside", "");
  EXPECT_EQ(replace_file(directory.file("taken"), "x", kForOwner).error().code, core::Errc::io);
  EXPECT_EQ(directory.entries(), 1u);
}

TEST(PrivateFile, OnlyRegularFilesAreRead) {
  const tests::Folder directory;
  EXPECT_FALSE(read_file(directory.path()));
  EXPECT_FALSE(read_file(directory.file("none")));
  ASSERT_EQ(::mkfifo(directory.file("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(directory.file("fifo")));
  EXPECT_FALSE(read_file(directory.write("long", std::string((1 << 20) + 1, 'x'))));
}

}  // namespace
}  // namespace troupe::security
