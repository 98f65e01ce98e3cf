// What a look must see again, though no time of a directory has changed.
#include "store/refresh.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/directory/directory_lock.hpp"
#include "store/run_store.hpp"
#include "tests/store/opened_store.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr const char* kStatuses =
    "SELECT d.path || ' ' || r.status FROM runs r JOIN directories d USING(id) ORDER BY 1";
constexpr const char* kProblems = "SELECT problem FROM directories WHERE problem IS NOT NULL ORDER BY path";

TEST(RefreshTest, ARunWhoseEndWasReadBeforeItsLockWentIsDone) {
  const tests::Folder runs;
  std::optional<experiment::DirectoryLock> locks[2];
  for (const int k : {0, 1}) {
    const std::string run = k == 0 ? "ended" : "killed";
    runs.write(run + "/config.toml", config_text(run));
    runs.write(run + "/metrics.jsonl", started_line() + epoch_line(1, 0.5) + (k == 0 ? ended_line() : ""));
    auto lock = experiment::DirectoryLock::take(runs.file(run));
    ASSERT_TRUE(lock.has_value());
    locks[k].emplace(std::move(*lock));
    age(runs, run);
  }
  auto before = opened(runs);
  EXPECT_THAT(rows(before, kStatuses), ElementsAre("ended running", "killed running"));
  locks[0].reset();
  locks[1].reset();
  auto store = opened(runs);
  EXPECT_EQ(store.refreshed().read, 0u) << "nothing but the locks has changed";
  EXPECT_THAT(rows(store, kStatuses), ElementsAre("ended done", "killed killed"));
}

TEST(RefreshTest, ADirectoryOfAGridThatBecomesARunIsFound) {
  const tests::Folder runs;
  write_done(runs, "sweep/x", 0.5);
  fs::create_directories(runs.file("sweep/y"));
  fs::create_directories(runs.file("later/z"));
  for (const char* folder : {"sweep", "sweep/x", "sweep/y", "later", "later/z"}) age(runs, folder);
  auto before = opened(runs);
  EXPECT_THAT(rows(before, kKinds), ElementsAre("later foreign", "sweep grid", "sweep/x run"));
  write_done(runs, "sweep/y", 0.5);
  write_done(runs, "later/z", 0.5);
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kKinds),
              ElementsAre("later grid", "later/z run", "sweep grid", "sweep/x run", "sweep/y run"));
}

TEST(RefreshTest, AGridMayHaveAConfiguration) {
  const tests::Folder runs;
  runs.write("sweep/config.toml", config_text("sweep"));
  write_done(runs, "sweep/x", 0.5);
  runs.write("begun/config.toml", config_text("begun"));
  runs.write("begun/checkpoints/a.bin", "");
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kKinds), ElementsAre("begun run", "sweep grid", "sweep/x run"));
  auto again = opened(runs);
  EXPECT_THAT(rows(again, kKinds), ElementsAre("begun run", "sweep grid", "sweep/x run"));
}

TEST(RefreshTest, AProblemThatIsMendedGoes) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  runs.write("a/notes.json", "[1]");
  age(runs, "a");
  auto before = opened(runs);
  EXPECT_THAT(rows(before, kProblems), ElementsAre(HasSubstr("notes.json")));
  runs.write("a/notes.json", "{\"tags\":[\"good\"]}");  // the file is overwritten: its directory does not change
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kProblems), IsEmpty());
  EXPECT_THAT(rows(store, "SELECT tag FROM tags"), ElementsAre("good"));
}

TEST(RefreshTest, NotesThatCannotBeLookedForAreAProblemAndStay) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  fs::create_symlink("notes.json", runs.file("a/notes.json"));  // to itself
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kProblems), ElementsAre(HasSubstr("notes.json")));
  const auto changed = store.change_notes("a", [](RunNotes& notes) { notes.tags.emplace_back("x"); });
  ASSERT_FALSE(changed.has_value());
  EXPECT_TRUE(fs::is_symlink(runs.file("a/notes.json")));
}

TEST(RefreshTest, APipeInPlaceOfMetricsIsAProblem) {
  const tests::Folder runs;
  runs.write("a/config.toml", config_text("a"));
  ASSERT_EQ(::mkfifo(runs.file("a/metrics.jsonl").c_str(), 0600), 0);
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kProblems), ElementsAre("metrics.jsonl is no file"));
}

TEST(RefreshTest, PipesInPlaceOfOtherFilesAreProblems) {
  const tests::Folder runs;
  for (const auto* name : {"notes.json", "summary.json", ".lock"}) {
    const auto run = fmt::format("{}-run", name[0] == '.' ? "lock" : name);
    write_done(runs, run, 0.5);
    fs::remove(runs.file(run + "/" + name));
    ASSERT_EQ(::mkfifo(runs.file(run + "/" + name).c_str(), 0600), 0);
  }
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kProblems), ElementsAre(HasSubstr("notes.json is no file"), "summary.json is no file"));
  EXPECT_THAT(rows(store, kStatuses), ElementsAre("lock-run done", "notes.json-run done", "summary.json-run done"));
  const auto changed = store.change_notes("notes.json-run", [](RunNotes& notes) { notes.tags.emplace_back("x"); });
  ASSERT_FALSE(changed.has_value());
  EXPECT_EQ(changed.error().code, core::Errc::corrupt);
}

TEST(RefreshTest, AnOptionThatAConfigurationHasTwiceIsStoredOnce) {
  const tests::Folder runs;
  runs.write("a/config.toml", "\"train.lr\" = 2\n[train]\nlr = 1\n");
  auto store = opened(runs);
  EXPECT_THAT(rows(store, "SELECT name FROM options JOIN keys ON keys.id = key"), ElementsAre("train.lr"));
  EXPECT_THAT(rows(store, kProblems), IsEmpty());
}

TEST(RefreshTest, OfThousandsOnlyWhatHasChangedIsRead) {
  constexpr std::size_t kRuns = 2500;  // several threads ask for their times
  const tests::Folder runs;
  const auto config = runs.write("config.toml", config_text("r")), end = runs.write("metrics.jsonl", ended_line());
  const auto name = [](std::size_t k) { return fmt::format("{}{:05}", k % 5 == 0 ? "grid/r" : "r", k); };
  fs::create_directory(runs.file("grid"));
  for (std::size_t k = 0; k < kRuns; ++k) {
    fs::create_directory(runs.file(name(k)));
    fs::create_hard_link(config, runs.file(name(k) + "/config.toml"));
    fs::create_hard_link(end, runs.file(name(k) + "/metrics.jsonl"));
    age(runs, name(k));
  }
  age(runs, "grid");
  EXPECT_EQ(opened(runs).refreshed().read, kRuns);
  auto same = opened(runs);
  EXPECT_EQ(same.refreshed().looked_at, kRuns + 1) << "with the grid";
  EXPECT_EQ(same.refreshed().read, 0u);
  EXPECT_EQ(same.refreshed().removed, 0u);

  runs.write(name(7) + "/notes.json", "{\"tags\":[\"x\"]}");
  runs.write(name(10) + "/notes.json", "{\"tags\":[\"y\"]}");
  fs::remove_all(runs.file(name(8)));
  fs::remove_all(runs.file(name(15)));
  write_done(runs, "new", 0.5);
  auto store = opened(runs);
  EXPECT_EQ(store.refreshed().read, 3u);
  EXPECT_EQ(store.refreshed().removed, 2u);
  EXPECT_THAT(rows(store, "SELECT path || ' ' || tag FROM tags JOIN directories d ON d.id = run ORDER BY 1"),
              ElementsAre(name(10) + " y", name(7) + " x"));
  EXPECT_EQ(store.database().number("SELECT count(*) FROM runs"), static_cast<std::int64_t>(kRuns) - 1);
}

TEST(RefreshTest, AnOldStoreGetsMissingIndexes) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  age(runs, "a");
  constexpr const char* kIndexes =
      "SELECT name FROM sqlite_schema WHERE name IN ('folders', 'problems', 'runs_by_name', 'runs_by_status') ORDER BY "
      "1";
  auto before = opened(runs);
  EXPECT_THAT(rows(before, kIndexes), ElementsAre("folders", "problems", "runs_by_name", "runs_by_status"));
  before.database().run(
      "DROP INDEX folders; DROP INDEX problems; DROP INDEX runs_by_name; DROP INDEX runs_by_status; UPDATE runs SET "
      "note = 'kept'");
  ASSERT_TRUE(before.database().check().has_value());
  auto store = opened(runs);
  EXPECT_THAT(rows(store, kIndexes), ElementsAre("folders", "problems", "runs_by_name", "runs_by_status"));
  EXPECT_THAT(rows(store, "SELECT note FROM runs"), ElementsAre("kept")) << "it was not made anew";
}

TEST(RefreshTest, AReaderWaitsForNoWriter) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  runs.write("killed/config.toml", config_text("killed"));
  runs.write("photos/cat.jpg", "");
  for (const char* folder : {"a", "killed", "photos"}) age(runs, folder);
  auto writer = opened(runs);
  const Transaction alone(writer.database());
  auto reader = opened(runs);
  EXPECT_THAT(reader.remarks(), IsEmpty());
  EXPECT_THAT(rows(reader, kStatuses), ElementsAre("a done", "killed killed"));
}

TEST(RefreshTest, AStoreThatCannotBeOpenedForWritingIsInMemory) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  fs::create_symlink(".store.sqlite", runs.file(".store.sqlite"));  // to itself: also root cannot write it
  auto store = opened(runs);
  EXPECT_THAT(store.remarks(), ElementsAre(HasSubstr("cannot be written: all runs are read anew each time")));
  EXPECT_THAT(rows(store, kStatuses), ElementsAre("a done"));
}

TEST(RefreshTest, ALookThatIsEndedForgetsNothing) {
  const tests::Folder runs;
  write_done(runs, "a", 0.5);
  write_done(runs, "b", 0.5);
  auto store = opened(runs);
  write_done(runs, "c", 0.5);
  std::stop_source stop;
  stop.request_stop();
  const auto ended = refresh(store.database(), runs.path(), stop.get_token());
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, core::Errc::interrupted);
  EXPECT_THAT(rows(store, kKinds), ElementsAre("a run", "b run"));
  ASSERT_TRUE(refresh(store.database(), runs.path()).has_value());
  EXPECT_THAT(rows(store, kKinds), ElementsAre("a run", "b run", "c run"));
}

}  // namespace
}  // namespace troupe::store
