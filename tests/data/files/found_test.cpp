#include "data/files/found.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "tests/forbidden.hpp"

namespace troupe::data {
namespace {

TEST(FoundIn, NamesWhatIsThere) {
  const tests::Folder folder;
  EXPECT_EQ(found_in(folder.file("none")), " (there is no such directory)");
  EXPECT_EQ(found_in(folder.path()), " (it is empty)");
  folder.write("notes.txt", "");
  EXPECT_EQ(found_in(folder.path()), " (it has 1 entry: notes.txt)");
  for (const char* shard : {"train-0.tar", "train-1.tar", "train-2.tar"}) folder.write(shard, "");
  EXPECT_EQ(found_in(folder.path()),
            " (it has 4 entries: notes.txt, train-0.tar, train-1.tar, …; data.name = \"shards\" reads train*.tar)");
  const tests::Folder other;
  other.write("photos.tar", "");
  EXPECT_EQ(found_in(other.path()), " (it has 1 entry: photos.tar; archives are not read: unpack them)");
}

TEST(NotFound, SaysWhenTheFolderMayNotBeRead) {
  const tests::Folder folder;
  folder.write("set/notes.txt", "");
  EXPECT_EQ(not_found(folder.file("set"), "missing").code, core::Errc::data);
  EXPECT_EQ(not_found(folder.file("set"), "missing").message, "missing");
  EXPECT_EQ(not_found(folder.file("none"), "missing").code, core::Errc::data);
  const tests::Forbidden forbidden(folder.file("set"));
  const auto error = not_found(folder.file("set"), "missing");
  EXPECT_EQ(error.code, core::Errc::io);
  EXPECT_EQ(error.message, "cannot read " + folder.file("set") + ": Permission denied");
}

TEST(HowToFetch, NamesTheCommandForThisFolder) {
  EXPECT_EQ(how_to_fetch("mnist", "data/mnist"),
            "fetch it with `troupe data fetch mnist`, or set data.path to the directory that has its files");
  EXPECT_EQ(how_to_fetch("mnist", "elsewhere"),
            "fetch it with `troupe data fetch mnist --to elsewhere`, or set data.path to the directory that has its "
            "files");
}

}  // namespace
}  // namespace troupe::data
