/// A question that is asked while the store is brought up to date.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/query/details.hpp"
#include "store/query/list.hpp"
#include "store/run_store.hpp"
#include "tests/store/opened_store.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using Paths = std::vector<std::string>;

core::Result<Paths> paths_in(Database& database) {
  Paths paths;
  for (Statement all(database, "SELECT path FROM directories ORDER BY path"); all.next();) paths.push_back(all.text(0));
  return database.check().map([&] { return paths; });
}

TEST(OpenAndAskTest, AsksOnceWhereNothingHasChanged) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  age(runs, "a");
  (void)opened(runs);
  int asked = 0;
  const auto answered = open_and_ask<Paths>(runs.path(), [&](Database& database) {
    ++asked;
    return paths_in(database);
  });
  ASSERT_TRUE(answered.has_value());
  EXPECT_THAT(answered->answer.value(), ElementsAre("a"));
  EXPECT_EQ(asked, 1);
}

TEST(OpenAndAskTest, AnswersWithWhatTheLookHasFound) {
  const tests::Folder runs;
  for (int k = 0; k < 20; ++k) {
    write_done(runs, fmt::format("{:02}", k), 0.5);
    const auto answered = open_and_ask<Paths>(runs.path(), paths_in);
    ASSERT_TRUE(answered.has_value());
    EXPECT_EQ(answered->answer.value().size(), static_cast<std::size_t>(k) + 1);
  }
}

/// The first answer is always older than the run: it comes while the question is asked.
TEST(OpenAndAskTest, AsksAgainWhenAnyoneHasChangedTheStore) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  age(runs, "a");
  (void)opened(runs);
  int asked = 0;
  const auto answered = open_and_ask<RunDetails>(runs.path(), [&](Database& database) -> core::Result<RunDetails> {
    const auto run = run_at(database, "b");
    if (!run) return tl::unexpected(run.error());
    if (++asked == 1) {
      write_done(runs, "b", 0.75);
      (void)opened(runs);
    }
    if (!*run) return core::fail(core::Errc::config, "there is no b");
    return details_of(database, **run);
  });
  ASSERT_TRUE(answered.has_value());
  ASSERT_TRUE(answered->answer.has_value()) << answered->answer.error().message;
  EXPECT_EQ(answered->answer->path, "b");
  EXPECT_EQ(asked, 2);
}

TEST(OpenAndAskTest, AStoreThatIsMissingIsMadeBeforeTheAnswer) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  const auto answered = open_and_ask<Paths>(runs.path(), paths_in);
  ASSERT_TRUE(answered.has_value());
  EXPECT_THAT(answered->answer.value(), ElementsAre("a"));
}

TEST(OpenAndAskTest, TheQuestionsErrorIsTheAnswer) {
  const tests::Folder runs;
  const auto answered = open_and_ask<Listing>(
      runs.path(), [](Database& database) { return list(database, {.columns = {"no such key"}}); });
  ASSERT_TRUE(answered.has_value());
  ASSERT_FALSE(answered->answer.has_value());
  EXPECT_EQ(answered->answer.error().code, core::Errc::usage);
}

TEST(OpenAndAskTest, NothingIsAskedOfADirectoryThatIsMissing) {
  const tests::Folder runs;
  const auto answered = open_and_ask<Paths>(runs.file("none"), [](Database&) -> core::Result<Paths> {
    ADD_FAILURE();
    return Paths{};
  });
  ASSERT_FALSE(answered.has_value());
  EXPECT_EQ(answered.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::store
