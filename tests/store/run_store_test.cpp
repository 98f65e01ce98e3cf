#include "store/run_store.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/directory/directory_lock.hpp"
#include "store/query/list.hpp"
#include "store/writer.hpp"
#include "tests/store/opened_store.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kRun = "20260102-030405-a";

/// The cells of `columns`, as text, of the runs that the filter selects; newest first.
std::vector<std::string> listed(RunStore& store, const std::string& filter, std::vector<std::string> columns) {
  const auto conditions = parse_filter(filter);
  EXPECT_TRUE(conditions.has_value());
  const auto listing = list(store.database(), {*conditions, std::move(columns)});
  EXPECT_TRUE(listing.has_value()) << listing.error().message;
  std::vector<std::string> lines;
  if (!listing) return lines;
  for (const auto& row : listing->rows) {
    std::string line;
    for (const auto& cell : row)
      line += (line.empty() ? "" : "|") +
              (cell.index() == 0 ? "-"
                                 : std::visit(
                                       [](const auto& value) {
                                         if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
                                           return std::string("-");
                                         else
                                           return fmt::format("{}", value);
                                       },
                                       cell));
    lines.push_back(line);
  }
  return lines;
}

std::int64_t listed_count(RunStore& store, const std::string& filter) {
  const auto conditions = parse_filter(filter);
  EXPECT_TRUE(conditions.has_value());
  const auto listing = list(store.database(), {*conditions, {"run"}});
  EXPECT_TRUE(listing.has_value()) << listing.error().message;
  return listing ? listing->total : -1;
}

std::vector<std::string> problems_of(RunStore& store) {
  std::vector<std::string> texts;
  const auto problems = store.problems();
  EXPECT_TRUE(problems.has_value());
  for (const auto& problem : *problems) texts.push_back(problem.path + ": " + problem.text);
  return texts;
}

TEST(RunStoreTest, ListsWhatTheDirectoriesSay) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  write_done(runs, "20260103-000000-b", 0.875, 7, 0.1);
  auto store = opened(runs);
  EXPECT_THAT(store.remarks(), IsEmpty());
  EXPECT_THAT(
      listed(store, "",
             {"run", "name", "started", "status", "seed", "strategy", "lr", "batch", "accuracy", "time.compute_s"}),
      ElementsAre("20260103-000000-b|b|2026-01-03 00:00:00|done|7|easgd|0.1|64|0.875|3.5",
                  "20260102-030405-a|a|2026-01-02 03:04:05|done|1|easgd|0.05|64|0.75|3.5"));
  EXPECT_THAT(problems_of(store), IsEmpty());
}

TEST(RunStoreTest, AnEmptyDirectoryHasNoRuns) {
  const tests::Folder runs;
  auto store = opened(runs);
  EXPECT_THAT(listed(store, "", {"run"}), IsEmpty());
  EXPECT_EQ(store.refreshed().looked_at, 0u);
}

TEST(RunStoreTest, ADirectoryThatIsMissingIsAnError) {
  const tests::Folder runs;
  const auto store = RunStore::open(runs.file("none"));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, core::Errc::config);
}

TEST(RunStoreTest, ReadsOnlyWhatHasChanged) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  age(runs, kRun);
  EXPECT_EQ(opened(runs).refreshed().read, 1u);
  EXPECT_EQ(opened(runs).refreshed().read, 0u) << "its directory has not changed";
  std::ofstream(runs.file(std::string(kRun) + "/metrics.jsonl"), std::ios::app) << started_line(3);
  EXPECT_EQ(opened(runs).refreshed().read, 0u) << "a run that is over goes on only after its directory has changed";
  runs.write(std::string(kRun) + "/journal-0002.bin", "");
  auto store = opened(runs);
  EXPECT_EQ(store.refreshed().read, 1u);
  EXPECT_THAT(listed(store, "", {"status"}), ElementsAre("killed"));
}

TEST(RunStoreTest, ADirectoryThatChangedJustNowIsLookedAtAgain) {
  const tests::Folder runs;
  runs.write("20260102-030405-a/plan.json", "{}");
  auto before = opened(runs);
  EXPECT_THAT(problems_of(before), ElementsAre("20260102-030405-a: no run: it has no config.toml"));
  write_done(runs, kRun, 0.75);
  auto store = opened(runs);
  EXPECT_THAT(problems_of(store), IsEmpty());
  EXPECT_THAT(listed(store, "", {"status"}), ElementsAre("done"));
}

TEST(RunStoreTest, AppendedLinesAreReadOnce) {
  const tests::Folder runs;
  const auto metrics = std::string(kRun) + "/metrics.jsonl";
  runs.write(std::string(kRun) + "/config.toml", config_text("a"));
  runs.write(metrics, started_line() + epoch_line(1, 0.5) + "{\"kind\":\"epo");  // a line that is being written
  age(runs, kRun);
  const auto lock = experiment::DirectoryLock::take(runs.file(kRun));
  ASSERT_TRUE(lock.has_value());
  age(runs, kRun);  // the lock's file is new
  {
    auto store = opened(runs);
    EXPECT_THAT(listed(store, "", {"status", "epochs", "accuracy"}), ElementsAre("running|1|0.5"));
    EXPECT_THAT(problems_of(store), IsEmpty());
    store.database().run("UPDATE points SET value = 0.125");  // what has been read is not read again
  }
  runs.write(metrics, started_line() + epoch_line(1, 0.5) + epoch_line(2, 0.625));
  auto store = opened(runs);
  EXPECT_THAT(listed(store, "", {"status", "epochs", "accuracy", "steps"}), ElementsAre("running|2|0.625|20"));
  Statement values(
      store.database(),
      "SELECT value FROM points JOIN series ON series.id = points.series WHERE name = 'test.accuracy' ORDER BY epoch");
  std::vector<std::string> found;
  while (values.next()) found.push_back(values.text(0));
  EXPECT_THAT(found, ElementsAre("0.125", "0.625"));
}

TEST(RunStoreTest, StatusSaysHowARunEnded) {
  const tests::Folder runs;
  const auto write = [&](const std::string& name, const std::string& lines) {
    runs.write(name + "/config.toml", config_text(name));
    runs.write(name + "/metrics.jsonl", lines);
  };
  write("a", started_line() + ended_line("diverged"));
  write("b", started_line() + ended_line("interrupted"));
  write("c", started_line() + ended_line("no_space"));
  write("d", started_line() + epoch_line(1, 0.5));
  runs.write("e/config.toml", config_text("e"));
  write("f", started_line() + ended_line("interrupted") + started_line(1) + epoch_line(2, 0.5) + ended_line());
  auto store = opened(runs);
  const auto all = listed(store, "", {"run", "status", "error"});
  EXPECT_THAT(all, testing::UnorderedElementsAre("a|diverged|it broke", "b|interrupted|it broke", "c|failed|it broke",
                                                 "d|killed|-", "e|killed|-", "f|done|-"));
}

TEST(RunStoreTest, ForeignAndDamagedDirectoriesAreProblemsAndNoErrors) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  write_done(runs, "20260102-030405-cut", 0.75);
  runs.write("20260102-030405-cut/summary.json", "{\"run\":");
  write_done(runs, "20260102-030405-lines", 0.75);
  runs.write("20260102-030405-lines/metrics.jsonl", started_line() + "nonsense\n" + ended_line());
  write_done(runs, "20260102-030405-toml", 0.75);
  runs.write("20260102-030405-toml/config.toml", "[run\n");
  runs.write("20260102-030405-notes/config.toml", config_text("notes"));
  runs.write("20260102-030405-notes/notes.json", "[1]");
  runs.write("photos/cat.jpg", "");
  runs.write("a-file", "");
  runs.write(".hidden/x", "");
  auto store = opened(runs);
  EXPECT_EQ(listed(store, "", {"run"}).size(), 5u) << "what can be read of a run is there";
  EXPECT_THAT(
      problems_of(store),
      ElementsAre(HasSubstr("cut: summary.json cannot be read"), HasSubstr("lines: metrics.jsonl: 1 line that"),
                  HasSubstr("notes: "), HasSubstr("toml: config.toml:1: "), "photos: no run: it has no config.toml"));
}

TEST(RunStoreTest, RunsOfGridsBelongToTheGrid) {
  const tests::Folder runs;
  write_done(runs, "sweep/20260102-030405-x", 0.5);
  write_done(runs, "sweep/20260102-030406-y", 0.75);
  runs.write("sweep/plots/a.png", "");
  age(runs, "sweep");
  age(runs, "sweep/20260102-030405-x");
  {
    auto store = opened(runs);
    EXPECT_THAT(listed(store, "grid=sweep", {"run"}),
                ElementsAre("sweep/20260102-030406-y", "sweep/20260102-030405-x"));
    EXPECT_THAT(problems_of(store), IsEmpty());
  }
  std::filesystem::remove_all(runs.file("sweep/20260102-030406-y"));
  write_done(runs, "sweep/20260102-030407-z", 0.875);
  auto store = opened(runs);
  EXPECT_THAT(listed(store, "grid=sweep", {"run"}), ElementsAre("sweep/20260102-030407-z", "sweep/20260102-030405-x"));
  EXPECT_EQ(store.refreshed().removed, 1u);
}

TEST(RunStoreTest, ARemovedRunLeavesNothingBehind) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  EXPECT_EQ(opened(runs).refreshed().read, 1u);
  std::filesystem::remove_all(runs.file(kRun));
  auto store = opened(runs);
  for (const char* table :
       {"directories", "runs", "readings", "configs", "options", "summaries", "results", "tags", "lineage", "points"})
    EXPECT_EQ(store.database().number(fmt::format("SELECT count(*) FROM {}", table)), 0) << table;
}

TEST(RunStoreTest, ADamagedStoreIsMadeAnewAndSaysSo) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  EXPECT_EQ(opened(runs).refreshed().read, 1u);
  runs.write(".store.sqlite", std::string(8192, 'x'));
  auto store = opened(runs);
  ASSERT_EQ(store.remarks().size(), 1u);
  EXPECT_THAT(store.remarks().front(), HasSubstr("it is made anew from the directories"));
  EXPECT_THAT(listed(store, "", {"accuracy"}), ElementsAre("0.75"));
}

TEST(RunStoreTest, AStoreWithADamagedPageIsMadeAnew) {
  const tests::Folder runs;
  for (int k = 0; k < 50; ++k) write_done(runs, fmt::format("20260102-0304{:02}-a", k), 0.75);
  EXPECT_EQ(opened(runs).refreshed().read, 50u);
  {
    std::fstream file(runs.file(".store.sqlite"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);  // all pages but the first
    const auto size = std::filesystem::file_size(runs.file(".store.sqlite"));
    file << std::string(size - 4096, '\x5a');
  }
  auto store = opened(runs);
  EXPECT_EQ(store.remarks().size(), 1u);
  EXPECT_EQ(listed(store, "", {"run"}).size(), 50u);
}

TEST(RunStoreTest, AStoreOfAnotherVersionIsMadeAnewAndSaysSo) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  opened(runs).database().run("PRAGMA user_version=99");
  auto store = opened(runs);
  ASSERT_EQ(store.remarks().size(), 1u);
  EXPECT_THAT(store.remarks().front(), HasSubstr("of another version"));
  EXPECT_THAT(listed(store, "", {"accuracy"}), ElementsAre("0.75"));
}

TEST(RunStoreTest, TagsAndNotesOutliveTheStore) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  {
    auto store = opened(runs);
    const auto notes = store.change_notes(kRun, [](RunNotes& all) {
      all.tags = {"paper", "best", "paper"};
      all.note = "größer — 更大";
    });
    ASSERT_TRUE(notes.has_value()) << notes.error().message;
    EXPECT_THAT(listed(store, "tag=paper", {"tags", "note"}), ElementsAre("best,paper|größer — 更大"));
  }
  std::filesystem::remove(runs.file(".store.sqlite"));
  auto store = RunStore::make_anew(runs.path());
  ASSERT_TRUE(store.has_value()) << store.error().message;
  EXPECT_THAT(listed(*store, "tag=best note~größer", {"tags", "note"}), ElementsAre("best,paper|größer — 更大"));
  EXPECT_THAT(listed(*store, "tag!=best", {"run"}), IsEmpty());
}

/// 2001 points are one too many: neighbours are averaged, and the last stays as it is.
TEST(RunStoreTest, ALongSeriesOfStepsIsHalved) {
  const tests::Folder runs;
  auto store = opened(runs);
  NewPoints points{std::numeric_limits<double>::infinity(), {}};
  for (int k = 0; k <= 2000; ++k) points.points.push_back({"step.loss", k * 0.5, k * 2.0, k * 1.0});
  Writer writer(store.database());
  writer.begin();
  points.points.pop_back();
  writer.put(1, points);
  EXPECT_EQ(store.database().number("SELECT count(*) FROM points"), 2000) << "so many are allowed";
  writer.put(1, {points.kept, {{"step.loss", 1000, 4000, 2000}}});
  EXPECT_EQ(store.database().number("SELECT count(*) FROM points"), 1001);
  Statement all(store.database(), "SELECT epoch, seconds, value FROM points ORDER BY epoch");
  for (int k = 0; k <= 1000; ++k) {
    ASSERT_TRUE(all.next()) << k;
    const bool last = k == 1000;  // of the points 2k and 2k + 1: place of the second, mean value
    EXPECT_EQ(all.real(0), last ? 1000 : k + 0.5);
    EXPECT_EQ(all.real(1), last ? 4000 : 4.0 * k + 2);
    EXPECT_EQ(all.real(2), last ? 2000 : 2 * k + 0.5);
  }
}

TEST(RunStoreTest, NamesAreUnicode) {
  const tests::Folder runs;
  write_done(runs, "20260102-030405-größe-训练-🙂", 0.75);
  auto store = opened(runs);
  EXPECT_THAT(listed(store, "name~训练", {"run", "name"}),
              ElementsAre("20260102-030405-größe-训练-🙂|größe-训练-🙂"));
}

TEST(RunStoreTest, StartsAreTheLocalTimeOfTheNameInAnyTimeZone) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  const char* old = std::getenv("TZ");
  const std::string before = old == nullptr ? "" : old;
  for (const char* zone : {"UTC", "Asia/Tokyo", "America/Los_Angeles"}) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    auto store = opened(runs);
    EXPECT_THAT(listed(store, "started=2026-01-02", {"started"}), ElementsAre("2026-01-02 03:04:05")) << zone;
    EXPECT_THAT(listed(store, "started>2026-01-02", {"run"}), IsEmpty()) << "a day is all of it";
    EXPECT_THAT(listed(store, "started>=2026-01-02T03:04 started<=2026-01", {"run"}), ElementsAre(kRun));
  }
  old == nullptr ? ::unsetenv("TZ") : ::setenv("TZ", before.c_str(), 1);
  ::tzset();
}

TEST(RunStoreTest, TwoWritersShareOneStore) {
  const tests::Folder runs;
  write_done(runs, kRun, 0.75);
  auto first = opened(runs);
  write_done(runs, "20260103-000000-b", 0.5);
  auto second = opened(runs);
  EXPECT_EQ(listed(first, "", {"run"}).size(), 2u) << "what one has read the other sees";
  EXPECT_EQ(listed(second, "", {"run"}).size(), 2u);
}

TEST(RunStoreTest, AThousandRunsTakeSeveralTransactions) {
  const tests::Folder runs;
  for (int k = 0; k < 1000; ++k) {
    const auto run = fmt::format("20260102-{:06}-r", k);
    runs.write(run + "/config.toml",
               fmt::format("[run]\nname = \"r\"\nseed = {}\n[train]\nlr = {}\n", k, k % 10 + 0.5));
    runs.write(run + "/metrics.jsonl", epoch_line(1, k / 1000.0) + ended_line());
  }
  auto store = opened(runs);
  EXPECT_EQ(store.refreshed().read, 1000u);
  EXPECT_EQ(listed_count(store, "lr=3.5"), 100);
  EXPECT_EQ(listed_count(store, "accuracy>=0.5 lr<1"), 50);
  EXPECT_EQ(store.database().number("SELECT count(*) FROM configs"), 10) << "runs that differ in their seeds share one";
}

}  // namespace
}  // namespace troupe::store
