#include "service/runs/store_access.hpp"

#include <filesystem>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/removal.hpp"
#include "tests/folder.hpp"
#include "tests/store/full_disk.hpp"
#include "tests/store/run_folders.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

class StoreAccessTest : public testing::Test {
 protected:
  StoreAccessTest() { store::write_done(folder_, "a", 0.5); }

  /// The runs in the answer.
  static std::vector<std::string> runs(const core::Result<store::RunStore*>& store) {
    EXPECT_TRUE(store.has_value());
    if (!store) return {};
    std::vector<std::string> found;
    for (store::Statement all((*store)->database(), "SELECT path FROM directories WHERE kind = 'run' ORDER BY path");
         all.next();)
      found.push_back(all.text(0));
    return found;
  }
  [[nodiscard]] bool is_behind() const { return std::chrono::steady_clock::now() > opened_ + StoreAccess::kMostBehind; }

  tests::Folder folder_;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
};

TEST_F(StoreAccessTest, AfterAChangeOfTheServiceTheAnswerIsCurrent) {
  StoreAccess access(folder_.path());
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  for (const std::string run : {"b", "c", "d"}) {
    store::write_done(folder_, run, 0.5);
    access.expire();
    EXPECT_EQ(runs(access.fresh()).back(), run);
  }
  fs::remove_all(folder_.file("d"));
  access.expire();
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a", "b", "c"));
}

TEST_F(StoreAccessTest, WhatAnotherProcessChangesIsFoundByWhoGoesOnAsking) {
  StoreAccess access(folder_.path());
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  store::write_done(folder_, "b", 0.5);
  EXPECT_TRUE(tests::eventually([&] { return runs(access.fresh()).size() == 2; }));
}

TEST_F(StoreAccessTest, AnswersAsItIsWhileALookTakesLong) {
  StoreAccess access(folder_.path());
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  opened_ = std::chrono::steady_clock::now();
  auto other = store::RunStore::open(folder_.path());
  ASSERT_TRUE(other.has_value());
  {
    const store::Transaction alone(other->database());  // the look waits for it, to write what it has found
    store::write_done(folder_, "b", 0.5);
    ASSERT_TRUE(tests::eventually([&] { return is_behind(); }));
    EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
    EXPECT_TRUE(access.is_looking());
    EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  }
  EXPECT_THAT(runs(access.current()), ElementsAre("a", "b"));
  EXPECT_FALSE(access.is_looking());
}

TEST_F(StoreAccessTest, ADamagedStoreIsMadeAnew) {
  StoreAccess access(folder_.path());
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  const auto file = folder_.file(".store.sqlite");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
      << std::string(static_cast<std::size_t>(fs::file_size(file)), '\xff');
  store::write_done(folder_, "b", 0.5);
  access.expire();
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a", "b"));
  store::write_done(folder_, "c", 0.5);
  access.expire();
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a", "b", "c"));
}

TEST_F(StoreAccessTest, AStoreThatAnotherProcessMakesAnewGoesOn) {
  StoreAccess access(folder_.path());
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  ASSERT_TRUE(store::RunStore::make_anew(folder_.path()).has_value());
  for (const std::string run : {"b", "c"}) {
    store::write_done(folder_, run, 0.5);
    access.expire();
    EXPECT_EQ(runs(access.fresh()).back(), run);
  }
}

TEST_F(StoreAccessTest, AStoreInMemoryIsLookedAtByWhoAsks) {
  fs::create_symlink(".store.sqlite", folder_.file(".store.sqlite"));  // to itself: also root cannot write it
  StoreAccess access(folder_.path());
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  store::write_done(folder_, "b", 0.5);
  access.expire();
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a", "b"));
  EXPECT_FALSE(access.is_looking());
}

TEST_F(StoreAccessTest, OnAFullDiskAnswersAreCurrentAndTheStoreIsAFileAgainLater) {
  constexpr std::chrono::milliseconds kAtOnce{0};
  StoreAccess access(folder_.path(), kAtOnce);
  EXPECT_THAT(runs(access.fresh()), ElementsAre("a"));
  const auto change = [&](const std::string& run) {
    store::write_done(folder_, run, 0.5);
    access.expire();
  };
  {
    const tests::FullDisk full;
    change("b");
    EXPECT_THAT(runs(access.fresh()), ElementsAre("a", "b"));
    const auto store = access.current();
    ASSERT_TRUE(store.has_value());
    EXPECT_TRUE((*store)->is_temporarily_in_memory());
    EXPECT_TRUE(store::remove_run(**store, "b").has_value());
  }
  change("c");
  const auto store = access.current();
  EXPECT_THAT(runs(store), ElementsAre("a", "c"));
  EXPECT_FALSE((*store)->is_temporarily_in_memory());
}

/// Looks without anybody who asks.
class BackgroundLookTest : public StoreAccessTest {
 protected:
  [[nodiscard]] std::unique_ptr<store::Database> connection() const { return store_.connect().value(); }
  store::RunStore store_ = store::RunStore::open(folder_.path()).value();
};

TEST_F(BackgroundLookTest, ALookIsMadeOnlyWhenItIsToldAndOneServesAllWhoWait) {
  BackgroundLook look(connection(), folder_.path());
  const auto now = BackgroundLook::Clock::now();
  EXPECT_FALSE(look.is_wanted());
  EXPECT_EQ(look.state().generation, 0);
  store::write_done(folder_, "b", 0.5);
  std::uint64_t number = 0;
  {
    const store::Transaction alone(store_.database());
    const auto first = look.begin(now);
    ASSERT_TRUE(tests::eventually([&] {
      number = look.begin(now);
      return number > first;  // the first look has begun, and waits for the transaction
    }));
    EXPECT_EQ(look.begin(now), number);
    EXPECT_FALSE(look.wait(number, BackgroundLook::Clock::now()));
  }
  EXPECT_TRUE(look.wait(number, BackgroundLook::Clock::now() + tests::kPatience));
  EXPECT_FALSE(look.is_wanted());
  EXPECT_EQ(look.under_way(), 0u);
  EXPECT_TRUE(look.state().usable);
  EXPECT_NE(look.state().generation, 0);
  EXPECT_EQ(store_.database().number("SELECT count(*) FROM runs"), 2);
}

TEST_F(BackgroundLookTest, ALookThatIsToBeginLaterBeginsEarlierForWhoWaits) {
  BackgroundLook look(connection(), folder_.path());
  const auto now = BackgroundLook::Clock::now();
  const auto later = look.begin(now + std::chrono::hours(1));
  EXPECT_TRUE(look.is_wanted());
  EXPECT_EQ(look.under_way(), 0u);
  EXPECT_FALSE(look.wait(later, BackgroundLook::Clock::now()));
  EXPECT_EQ(look.begin(now), later);
  EXPECT_TRUE(look.wait(later, now + tests::kPatience));
}

TEST_F(BackgroundLookTest, AStopEndsWhoWaitsAndAllLooks) {
  std::stop_source stop;
  BackgroundLook look(connection(), folder_.path(), stop.get_token());
  const auto now = BackgroundLook::Clock::now();
  const auto never = look.begin(now + std::chrono::hours(1));
  auto waited = std::async(std::launch::async, [&] { return look.wait(never, now + std::chrono::hours(1)); });
  stop.request_stop();
  ASSERT_EQ(waited.wait_for(tests::kPatience), std::future_status::ready);
  EXPECT_FALSE(waited.get());
  EXPECT_FALSE(look.wait(look.begin(now), now + std::chrono::hours(1)));
}

}  // namespace
}  // namespace troupe::service
