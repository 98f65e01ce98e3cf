/// What makes room must not need room: on a full disk runs are seen and removed.
#include "tests/store/full_disk.hpp"

#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "store/removal.hpp"
#include "tests/store/opened_store.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kRunPaths = "SELECT path FROM directories ORDER BY path";

class FullDiskTest : public testing::Test {
 protected:
  FullDiskTest() { write_done(runs_, "a", 0.5); }
  const tests::Folder runs_;
};

TEST_F(FullDiskTest, RunsThatHaveChangedAreSeenFromMemory) {
  { const auto before = opened(runs_); }
  write_done(runs_, "b", 0.75);
  {
    const tests::FullDisk full;
    auto store = opened(runs_);
    EXPECT_TRUE(store.is_temporarily_in_memory());
    EXPECT_THAT(rows(store, kRunPaths), ElementsAre("a", "b"));
    EXPECT_THAT(store.remarks(), ElementsAre(HasSubstr("cannot be written: all runs are read anew each time: ")));
    std::vector<std::string> answer;
    const auto asked = RunStore::open(runs_.path(), [&](Database& database) {
      answer.clear();
      for (Statement all(database, kRunPaths); all.next();) answer.push_back(all.text(0));
    });
    ASSERT_TRUE(asked.has_value());
    EXPECT_THAT(answer, ElementsAre("a", "b"));
  }
  auto store = opened(runs_);
  EXPECT_FALSE(store.is_temporarily_in_memory());
  EXPECT_THAT(rows(store, kRunPaths), ElementsAre("a", "b"));
  EXPECT_THAT(store.remarks(), ElementsAre());
}

TEST_F(FullDiskTest, AStoreThatIsMissingIsNoError) {
  const tests::FullDisk full;
  auto store = opened(runs_);
  EXPECT_THAT(rows(store, kRunPaths), ElementsAre("a"));
}

TEST_F(FullDiskTest, AQuotaThatIsUsedUpIsAFullDisk) {
  auto database = Database::open(runs_.file("jobs.sqlite"), true);
  ASSERT_TRUE(database.has_value()) << database.error().message;
  const tests::FullDisk full(EDQUOT);
  database->run("CREATE TABLE a(b)");
  const auto written = database->check();
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, core::Errc::no_space) << written.error().message;
}

TEST_F(FullDiskTest, ARunIsRemovedAlthoughTheStoreCannotForgetIt) {
  write_done(runs_, "b", 0.75);
  auto store = opened(runs_);
  {
    const tests::FullDisk full;  // since the store was opened
    const auto removed = remove_run(store, "b");
    ASSERT_TRUE(removed.has_value()) << removed.error().message;
  }
  EXPECT_FALSE(fs::exists(runs_.file("b")));
  EXPECT_FALSE(fs::exists(runs_.file(fmt::format(".removing-{}", ::geteuid()))));
  EXPECT_TRUE(store.database().check().has_value()) << "the connection goes on";
  EXPECT_THAT(rows(store, kRunPaths), ElementsAre("a", "b"));
  auto later = opened(runs_);
  EXPECT_THAT(rows(later, kRunPaths), ElementsAre("a"));
}

/// A file system of its own.
class Mounted {
 public:
  Mounted(std::string at, const char* options)
      : at_(std::move(at)), done_(::mount("none", at_.c_str(), "tmpfs", 0, options) == 0) {}
  ~Mounted() {
    if (done_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  [[nodiscard]] bool is_done() const { return done_; }

 private:
  std::string at_;
  bool done_;
};

TEST_F(FullDiskTest, ARunIsRemovedWhereThereIsNoRoomForADirectory) {
  const Mounted disk(runs_.path(), "nr_inodes=40");
  if (!disk.is_done()) GTEST_SKIP() << "only root mounts file systems";
  write_done(runs_, "b", 0.75);
  runs_.write("b/.lock", "");
  auto store = opened(runs_);
  int files = 0;
  while (std::ofstream(runs_.file(fmt::format("b/{}", files)))) ASSERT_LT(++files, 40);
  std::error_code error;
  ASSERT_FALSE(fs::create_directory(runs_.file("c"), error));
  const auto removed = remove_run(store, "b");
  EXPECT_TRUE(removed.has_value()) << removed.error().message;
  EXPECT_FALSE(fs::exists(runs_.file("b")));
}

}  // namespace
}  // namespace troupe::store
