#include "store/removal.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file_descriptor.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kRemoved = "20260102-030405-a";
constexpr const char* kKept = "20260103-000000-b";

RunStore runs_to_remove(const tests::Folder& runs) {
  write_done(runs, kRemoved, 0.75);
  write_done(runs, kKept, 0.5, 2, 0.1);
  auto store = RunStore::open(runs.path());
  EXPECT_TRUE(store.has_value()) << store.error().message;
  return std::move(*store);
}

std::string removing_folder() { return fmt::format(".removing-{}", ::geteuid()); }

int no_locks(int /*file*/, int /*command*/, struct flock* /*what*/) {
  errno = ENOLCK;
  return -1;
}

core::Result<experiment::DirectoryLock> take_without_locks(const std::string& directory) {
  return experiment::DirectoryLock::take(directory, &no_locks);
}

TEST(RemovalTest, RemovesTheDirectoryAndTheRow) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  const auto removed = remove_run(store, kRemoved);
  ASSERT_TRUE(removed.has_value()) << removed.error().message;
  EXPECT_FALSE(fs::exists(runs.file(kRemoved)));
  EXPECT_FALSE(fs::exists(runs.file(removing_folder()))) << "nothing stays behind";
  EXPECT_TRUE(fs::exists(runs.file(std::string(kKept) + "/config.toml")));
  EXPECT_EQ(store.database().number("SELECT count(*) FROM runs"), 1);
  EXPECT_EQ(store.database().number("SELECT count(*) FROM configs"), 1);
  EXPECT_EQ(store.database().number("SELECT count(DISTINCT config) FROM options"), 1);
}

/// NFS keeps a removed file that is open under another name, and with it the directory.
TEST(RemovalTest, TheLockIsLetGoBeforeItsFileIsRemoved) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  const core::FileDescriptor events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(events.get(), runs.file(kRemoved).c_str(), IN_CLOSE_WRITE | IN_DELETE), 0);
  ASSERT_TRUE(remove_run(store, kRemoved).has_value());
  alignas(inotify_event) std::array<char, 1 << 14> bytes{};
  const auto size = ::read(events.get(), bytes.data(), bytes.size());
  std::vector<std::string> of_lock;
  for (std::ptrdiff_t at = 0; at < size;) {
    inotify_event event{};
    std::memcpy(&event, bytes.data() + at, sizeof event);
    const std::string name(event.len > 0 ? bytes.data() + at + sizeof event : "");
    if (name == experiment::DirectoryLock::kFile)
      of_lock.emplace_back((event.mask & IN_DELETE) != 0 ? "removed" : "closed");
    at += static_cast<std::ptrdiff_t>(sizeof event + event.len);
  }
  EXPECT_THAT(of_lock, testing::ElementsAre("closed", "removed"));
}

TEST(RemovalTest, AnotherDirectoryThatCameInItsPlaceStays) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  const auto swapped = [&](const std::string& directory) {
    auto lock = experiment::DirectoryLock::take(directory);
    fs::rename(directory, runs.file("moved"));
    runs.write(std::string(kRemoved) + "/precious.txt", "x");
    return lock;
  };
  const auto removed = remove_run(store, kRemoved, swapped);
  ASSERT_FALSE(removed.has_value());
  EXPECT_EQ(removed.error().code, core::Errc::config);
  EXPECT_THAT(removed.error().message, HasSubstr(kRemoved));
  EXPECT_EQ(runs.read(std::string(kRemoved) + "/precious.txt"), "x");
  EXPECT_TRUE(fs::exists(runs.file("moved/summary.json")));
  EXPECT_FALSE(fs::exists(runs.file(removing_folder())));
  EXPECT_EQ(store.database().number("SELECT count(*) FROM runs"), 2) << "the store forgets nothing";
}

TEST(RemovalTest, RemovesARunOfAGrid) {
  const tests::Folder runs;
  write_done(runs, "sweep/20260102-030405-x", 0.5);
  write_done(runs, "sweep/20260102-030406-y", 0.75);
  auto store = RunStore::open(runs.path());
  ASSERT_TRUE(store.has_value());
  const auto removed = remove_run(*store, "sweep/20260102-030405-x");
  ASSERT_TRUE(removed.has_value()) << removed.error().message;
  EXPECT_FALSE(fs::exists(runs.file("sweep/20260102-030405-x")));
  EXPECT_TRUE(fs::exists(runs.file("sweep/20260102-030406-y/summary.json")));
}

TEST(RemovalTest, ARunThatIsTrainedStays) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  const auto lock = experiment::DirectoryLock::take(runs.file(kRemoved));
  ASSERT_TRUE(lock.has_value());
  const auto removed = remove_run(store, kRemoved);
  ASSERT_FALSE(removed.has_value());
  EXPECT_EQ(removed.error().code, core::Errc::timeout);
  EXPECT_TRUE(fs::exists(runs.file(std::string(kRemoved) + "/summary.json")));
}

TEST(RemovalTest, WhatIsNoRunStays) {
  const tests::Folder runs, elsewhere;
  auto store = runs_to_remove(runs);
  write_done(elsewhere, "x", 0.5);
  write_done(elsewhere, "grid/y", 0.5);
  fs::create_directory_symlink(elsewhere.file("x"), runs.file("link"));
  fs::create_directory_symlink(elsewhere.file("grid"), runs.file("linked-grid"));
  write_done(runs, "grid", 0.5);  // has a config.toml and a metrics.jsonl, and runs
  write_done(runs, "grid/20260102-030405-x", 0.5);
  runs.write("begun/config.toml", "");
  runs.write("photos/cat.jpg", "");
  runs.write("photos/metrics.jsonl", "");
  write_done(runs, ".hidden", 0.5);
  runs.write("odd/metrics.jsonl", "");
  fs::create_symlink(elsewhere.file("x/config.toml"), runs.file("odd/config.toml"));
  runs.write("lock/config.toml", "");
  runs.write("lock/metrics.jsonl", "");
  fs::create_symlink(elsewhere.file("x/made"), runs.file("lock/.lock"));
  const auto escape = "../" + fs::path(elsewhere.path()).filename().string() + "/x";
  for (const std::string& path :
       {std::string(), std::string("."), std::string(".."), escape, std::string(kRemoved) + "/",
        std::string("/") + kRemoved, std::string("grid//20260102-030405-x"), std::string("grid/20260102-030405-x/z"),
        std::string("link"), std::string("linked-grid/y"), std::string("grid"), std::string("begun"),
        std::string("photos"), std::string(".hidden"), std::string("odd"), std::string("lock"), std::string("none")}) {
    const auto removed = remove_run(store, path);
    ASSERT_FALSE(removed.has_value()) << path;
    EXPECT_EQ(removed.error().code, core::Errc::config) << path;
    EXPECT_EQ(removed.error().message.find('\n'), std::string::npos);
    EXPECT_THAT(removed.error().message, HasSubstr("is not the directory of a run")) << path;
  }
  for (const char* file : {"x/summary.json", "grid/y/summary.json"}) EXPECT_TRUE(fs::exists(elsewhere.file(file)));
  for (const char* file :
       {"20260102-030405-a/summary.json", "grid/20260102-030405-x/summary.json", "grid/summary.json",
        "begun/config.toml", "photos/cat.jpg", ".hidden/summary.json", "odd/config.toml", "lock/config.toml"})
    EXPECT_TRUE(fs::exists(runs.file(file))) << file;
  EXPECT_FALSE(fs::exists(elsewhere.file("x/made"))) << "no lock was taken through a link";
}

TEST(RemovalTest, LeftoversGoOnlyWhereNobodyHoldsThem) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  const auto folder = removing_folder();
  runs.write(folder + "/killed-1/x", "");
  runs.write(folder + "/busy-2/x", "");
  runs.write(".removing-of-somebody/x", "");
  fs::permissions(runs.file(folder), fs::perms::owner_all);
  const auto busy = experiment::DirectoryLock::take(runs.file(folder + "/busy-2"));
  ASSERT_TRUE(busy.has_value());
  const auto removed = remove_run(store, kRemoved);
  ASSERT_TRUE(removed.has_value()) << removed.error().message;
  EXPECT_FALSE(fs::exists(runs.file(folder + "/killed-1")));
  EXPECT_TRUE(fs::exists(runs.file(folder + "/busy-2/x")));
  EXPECT_TRUE(fs::exists(runs.file(".removing-of-somebody/x")));
  EXPECT_FALSE(fs::exists(runs.file(kRemoved)));
}

TEST(RemovalTest, AFolderThatIsNotItsOwnStaysAsItIs) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  runs.write(removing_folder() + "/mine/x", "");
  fs::permissions(runs.file(removing_folder()), fs::perms(0755));
  const auto removed = remove_run(store, kRemoved);
  ASSERT_FALSE(removed.has_value());
  EXPECT_TRUE(fs::exists(runs.file(removing_folder() + "/mine/x")));
  EXPECT_TRUE(fs::exists(runs.file(std::string(kRemoved) + "/summary.json")));
}

TEST(RemovalTest, AStoreThatCannotBeWrittenKeepsTheDirectory) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  store.database().run("PRAGMA query_only=ON");
  const auto removed = remove_run(store, kRemoved);
  ASSERT_FALSE(removed.has_value());
  EXPECT_TRUE(fs::exists(runs.file(std::string(kRemoved) + "/summary.json")));
  EXPECT_FALSE(fs::exists(runs.file(removing_folder())));
}

TEST(RemovalTest, ACommitThatFailsBringsTheDirectoryBack) {
  const tests::Folder runs;
  auto store = runs_to_remove(runs);
  // A constraint that is checked at the commit, and that the removed row breaks.
  store.database().run(
      "PRAGMA foreign_keys=ON;"
      "CREATE TABLE holders(run INTEGER REFERENCES directories(id) DEFERRABLE INITIALLY DEFERRED);"
      "INSERT INTO holders SELECT id FROM directories");
  ASSERT_TRUE(store.database().check().has_value());
  const auto removed = remove_run(store, kRemoved);
  ASSERT_FALSE(removed.has_value());
  EXPECT_THAT(removed.error().message, HasSubstr("FOREIGN KEY"));
  EXPECT_TRUE(fs::exists(runs.file(std::string(kRemoved) + "/summary.json")));
  EXPECT_FALSE(fs::exists(runs.file(removing_folder())));
  store.database().clear();
  EXPECT_EQ(store.database().number("SELECT count(*) FROM runs"), 2);
}

TEST(RemovalTest, WithoutLocksOnlyRunsWithAnEndAreRemoved) {
  const tests::Folder runs;
  write_done(runs, kRemoved, 0.75);
  runs.write("open/config.toml", config_text("open"));
  runs.write("open/metrics.jsonl", started_line());
  auto store = RunStore::open(runs.path());
  ASSERT_TRUE(store.has_value());
  const auto refused = remove_run(*store, "open", take_without_locks);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, core::Errc::timeout);
  EXPECT_THAT(refused.error().message, HasSubstr("remove the directory yourself"));
  EXPECT_TRUE(fs::exists(runs.file("open/metrics.jsonl")));
  EXPECT_TRUE(remove_run(*store, kRemoved, take_without_locks).has_value());
  EXPECT_FALSE(fs::exists(runs.file(kRemoved)));
  EXPECT_TRUE(remove_run(*store, "open").has_value());
}

}  // namespace
}  // namespace troupe::store
