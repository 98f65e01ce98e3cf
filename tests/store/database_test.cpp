#include "store/database.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/query/list.hpp"
#include "store/run_store.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

TEST(DatabaseTest, AfterAFailureStatementsDoNothing) {
  auto database = Database::open(":memory:", false);
  ASSERT_TRUE(database.has_value());
  Statement wrong(*database, "SELECT FROM WHERE");
  EXPECT_FALSE(wrong.with(std::int64_t{1}, std::string("x")).next());
  EXPECT_FALSE(wrong.with_list({Cell(2.5)}).next());
  EXPECT_FALSE(database->check().has_value());
  Statement late(*database, "SELECT ?");
  EXPECT_FALSE(late.with(std::int64_t{1}).next()) << "it was not prepared";
  database->clear();
  Statement right(*database, "SELECT ?");
  ASSERT_TRUE(right.with(std::int64_t{4711}).next());
  EXPECT_EQ(right.integer(0), 4711);
}

TEST(DatabaseTest, FailuresSayWhatToDo) {
  const tests::Folder folder;
  auto whole = Database::open(folder.file("a.sqlite"), true);
  ASSERT_TRUE(whole.has_value());
  whole->run("PRAGMA max_page_count=4; CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(100000))");
  ASSERT_FALSE(whole->check().has_value());
  EXPECT_EQ(whole->check().error().code, core::Errc::no_space);
  EXPECT_THAT(whole->check().error().message, testing::HasSubstr("make room"));
  folder.write("b.sqlite", std::string(8192, 'x'));
  const auto damaged = Database::open(folder.file("b.sqlite"), true, "move it away");
  ASSERT_FALSE(damaged.has_value());
  EXPECT_EQ(damaged.error().code, core::Errc::corrupt);
  EXPECT_THAT(damaged.error().message, testing::EndsWith("not a database: move it away"));
}

TEST(DatabaseTest, NumbersOfEitherKindAreReal) {
  auto database = Database::open(":memory:", false);
  ASSERT_TRUE(database.has_value());
  Statement row(*database, "SELECT 7, 2.5, 'x', NULL");
  ASSERT_TRUE(row.next());
  EXPECT_EQ(row.real(0), 7);
  EXPECT_EQ(row.real(1), 2.5);
  EXPECT_EQ(row.real(2), 0);
  EXPECT_EQ(row.real(3), 0);
}

/// Wherever a page is damaged: each command says so or makes the store anew; none is killed by a signal.
TEST(DatabaseTest, AnyDamagedPageIsAnErrorOrMadeAnew) {
  const tests::Folder runs;
  for (int k = 0; k < 40; ++k) {
    const auto run = fmt::format("20260102-0304{:02}-a", k);
    write_done(runs, run, 0.75, k, k + 0.5);
    age(runs, run);
  }
  const auto file = runs.file(".store.sqlite"), whole = runs.file(".whole");
  ASSERT_TRUE(RunStore::open(runs.path()).has_value());
  std::filesystem::copy_file(file, whole);
  constexpr std::size_t kPage = 4096;
  const auto size = std::filesystem::file_size(whole);
  ASSERT_GT(size, 20 * kPage);
  std::size_t noticed = 0;
  const auto step = std::max<std::size_t>(1, size / kPage / 24) * kPage;
  for (std::size_t page = kPage; page < size; page += step) {
    std::filesystem::copy_file(whole, file, std::filesystem::copy_options::overwrite_existing);
    {
      std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(static_cast<std::streamoff>(page));
      damaged << std::string(kPage, '\x5a');
    }
    const auto conditions = parse_filter("lr<20 time.compute_s=3.5 tag!=x");
    ASSERT_TRUE(conditions.has_value());
    const auto asked = open_and_ask<Listing>(runs.path(), [&](Database& database) {
      return list(database, {*conditions, {"run", "accuracy", "tau", "tags"}});
    });
    ASSERT_TRUE(asked.has_value()) << page << ": " << asked.error().message;
    const auto& [store, listing] = *asked;
    if (!listing) {
      EXPECT_EQ(listing.error().code, core::Errc::corrupt) << page << ": " << listing.error().message;
      EXPECT_THAT(listing.error().message, testing::HasSubstr("`troupe runs rebuild`"));
    } else if (!store.remarks().empty()) {
      EXPECT_EQ(listing->total, 20) << page;
    }
    const auto anew = RunStore::make_anew(runs.path());
    ASSERT_TRUE(anew.has_value()) << page << ": " << anew.error().message;
    EXPECT_EQ(anew->refreshed().read, 40u) << page;
    noticed += listing && store.remarks().empty() ? 0 : 1;
  }
  EXPECT_GT(noticed, 2u);
}

}  // namespace
}  // namespace troupe::store
