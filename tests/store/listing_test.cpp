// When a look need not list the root, and what it finds all the same.
#include "store/look/listing.hpp"

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file_descriptor.hpp"
#include "store/look/thread_pool.hpp"
#include "store/run_store.hpp"
#include "store/schema.hpp"
#include "tests/store/opened_store.hpp"
#include "tests/store/run_folders.hpp"
#include "tests/wait.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

std::int64_t time_of(const tests::Folder& runs) {
  const core::FileDescriptor root(::open(runs.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return time_of_listing(root.get());
}

/// As if the root had not changed for a while, and each of its directories were known. Its real time cannot be set.
void trust(const tests::Folder& runs) {
  auto store = opened(runs);
  Transaction all(store.database());
  keep_listing(store.database(), time_of(runs));
  ASSERT_TRUE(all.commit().has_value());
  ASSERT_EQ(known_listing(store.database()), time_of(runs));
}

/// On an unusual file system the root is always listed, and the rest need not be tested.
bool is_trusted(const tests::Folder& runs) { return time_of(runs) != 0; }

TEST(ListingTest, ARootThatHasNotChangedIsNotListedAndOneThatHasIs) {
  const tests::Folder runs;
  if (!is_trusted(runs)) GTEST_SKIP() << "this file system keeps no such time";
  write_done(runs, "a", 0.5);
  write_done(runs, "b", 0.5);
  trust(runs);
  {
    auto store = opened(runs);
    EXPECT_THAT(rows(store, kKinds), ElementsAre("a run", "b run"));
    store.database().run("DELETE FROM runs WHERE name = 'b'; DELETE FROM directories WHERE path = 'b'");
  }
  auto blind = opened(runs);
  EXPECT_THAT(rows(blind, kKinds), ElementsAre("a run")) << "without a list nobody tells of b";
  write_done(runs, "c", 0.5);
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kKinds), ElementsAre("a run", "b run", "c run"));
}

TEST(ListingTest, AChangeOfAKnownDirectoryIsSeenWithoutAList) {
  const tests::Folder runs;
  if (!is_trusted(runs)) GTEST_SKIP() << "this file system keeps no such time";
  write_done(runs, "a", 0.5);
  write_done(runs, "sweep/x", 0.5);
  runs.write("photos/cat.jpg", "");
  for (const char* folder : {"a", "sweep", "sweep/x", "photos"}) age(runs, folder);
  trust(runs);
  runs.write("a/notes.json", "{\"tags\":[\"good\"]}");
  write_done(runs, "sweep/y", 0.5);
  write_done(runs, "photos", 0.5);
  auto store = opened(runs);
  EXPECT_EQ(store.database().number("SELECT count(*) FROM tags"), 1);
  EXPECT_THAT(rows(store, kKinds), ElementsAre("a run", "photos run", "sweep grid", "sweep/x run", "sweep/y run"));
}

TEST(ListingTest, ARunThatBecomesAFolderIsFoundByTheNextLook) {
  const tests::Folder runs;
  if (!is_trusted(runs)) GTEST_SKIP() << "this file system keeps no such time";
  write_done(runs, "a", 0.5);
  trust(runs);
  fs::remove(runs.file("a/config.toml"));
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kKinds), IsEmpty());
  EXPECT_EQ(known_listing(store.database()), 0);
  auto next = opened(runs);
  EXPECT_THAT(rows(next, kKinds), ElementsAre("a foreign"));
}

TEST(ListingTest, WhatALinkLeadsToMayGoAndComeBack) {
  const tests::Folder runs, elsewhere;
  if (!is_trusted(runs)) GTEST_SKIP() << "this file system keeps no such time";
  write_done(elsewhere, "a", 0.5);
  fs::create_directory_symlink(elsewhere.file("a"), runs.file("link"));
  trust(runs);
  fs::rename(elsewhere.file("a"), elsewhere.file("b"));
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kKinds), IsEmpty());
  EXPECT_EQ(known_listing(store.database()), 0);
  fs::rename(elsewhere.file("b"), elsewhere.file("a"));
  auto next = opened(runs);
  EXPECT_THAT(rows(next, kKinds), ElementsAre("link run"));
}

TEST(ListingTest, OnlyASettledRootWithoutLinksToNothingIsRememberedAndNoWriterIsWaitedFor) {
  const tests::Folder runs, linked;
  if (!is_trusted(runs)) GTEST_SKIP() << "this file system keeps no such time";
  for (const auto* folder : {&runs, &linked}) {
    write_done(*folder, "a", 0.5);
    age(*folder, "a");
  }
  fs::create_symlink("nothing", linked.file("link"));
  auto first = opened(runs), first_linked = opened(linked);
  EXPECT_EQ(known_listing(first.database()), 0) << "it has changed just now";
  const auto now = [] { return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(); };
  ASSERT_TRUE(tests::eventually([&] { return std::max(time_of(runs), time_of(linked)) < now() - 2'100'000'000; }));
  {
    const Transaction alone(first.database());
    auto store = opened(runs);
    EXPECT_THAT(store.remarks(), IsEmpty());
    EXPECT_EQ(known_listing(store.database()), 0);
  }
  auto store = opened(runs), store_linked = opened(linked);
  EXPECT_EQ(known_listing(store.database()), time_of(runs));
  EXPECT_EQ(known_listing(store_linked.database()), 0);
  fs::create_directory(linked.file("nothing"));
  write_done(linked, "nothing", 0.5);
  auto next = opened(linked);
  EXPECT_THAT(rows(next, kKinds), ElementsAre("a run", "link run", "nothing run"));
}

TEST(ListingTest, AStoreThatIsOpenedAndClosedDoesNotChangeTheRoot) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  (void)opened(runs);
  const auto before = time_of(runs);
  {
    auto store = opened(runs);
    EXPECT_TRUE(store.change_notes("a", [](RunNotes& notes) { notes.note = "x"; }).has_value());
  }
  EXPECT_EQ(time_of(runs), before);
}

TEST(ThreadPoolTest, DoesEachTaskOnceAndTakesMoreAfterAWait) {
  constexpr int kTasks = 1000;
  std::vector<std::atomic<int>> done(2 * kTasks);
  ThreadPool pool(4);
  pool.wait();
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < kTasks; ++k) pool.add([&done, at = half * kTasks + k] { ++done[at]; });
    pool.wait();
    for (int k = 0; k < kTasks; ++k) EXPECT_EQ(done[half * kTasks + k], 1);
  }
}

}  // namespace
}  // namespace troupe::store
