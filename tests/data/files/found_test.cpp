#include "data/files/found.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"

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
            " (it has 4 entries: notes.txt, train-0.tar, train-1.tar, …; archives are not read: unpack them)");
}

}  // namespace
}  // namespace troupe::data
