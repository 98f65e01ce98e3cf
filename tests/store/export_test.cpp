#include "store/query/export.hpp"

#include <cstdlib>
#include <ctime>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/query/list.hpp"
#include "store/run_store.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kExported = "20260102-030405-a";

/// A store of two runs that differ in lr and seed; the first has a tag and a note.
RunStore two_runs(const tests::Folder& runs) {
  write_done(runs, kExported, 0.75);
  write_done(runs, "20260103-000000-b", 0.5, 2, 0.1);
  auto store = RunStore::open(runs.path());
  EXPECT_TRUE(store.has_value()) << store.error().message;
  EXPECT_TRUE(store->change_notes(kExported, [](RunNotes& notes) { notes = {{"paper"}, "a, \"b\""}; }).has_value());
  return std::move(*store);
}

std::vector<RunDetails> all_details(RunStore& store) {
  std::vector<RunDetails> all;
  const auto listing = list(store.database(), {.ascending = true});
  EXPECT_TRUE(listing.has_value());
  for (const auto id : listing->runs) {
    auto one = details_of(store.database(), id);
    EXPECT_TRUE(one.has_value());
    all.push_back(std::move(*one));
  }
  return all;
}

TEST(ExportTest, DetailsHaveOptionsResultsAndNotes) {
  const tests::Folder runs;
  auto store = two_runs(runs);
  const auto all = all_details(store);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].path, kExported);
  EXPECT_EQ(*find(all[0].options, "run.seed"), Cell(std::int64_t{1}));
  EXPECT_EQ(*find(all[0].options, "cluster.pinning"), Cell(std::string("true")));
  EXPECT_EQ(*find(all[0].options, "cluster.slowdown"), Cell(std::string("[1.0,4.0]")));
  EXPECT_EQ(*find(all[0].results, "center_hash"), Cell(std::string("xxh3:00")));
  EXPECT_EQ(find(all[0].results, "test.top5"), nullptr) << "it is null";
  EXPECT_EQ(all[0].notes, (RunNotes{{"paper"}, "a, \"b\""}));
  EXPECT_THAT(differing_keys(all), ElementsAre("run.seed", "train.lr"));
}

TEST(ExportTest, JsonHasTheCurves) {
  const tests::Folder runs;
  auto store = two_runs(runs);
  const auto all = all_details(store);
  const auto curves = curves_of(store.database(), all[0].id);
  ASSERT_TRUE(curves.has_value());
  const auto json = nlohmann::json::parse(json_line(all[0], *curves));
  EXPECT_EQ(json["curves"]["test.accuracy"].dump(), "[[1.0,2.0,0.5],[2.0,4.0,0.6],[3.0,6.0,0.75]]");
  EXPECT_EQ(json["options"]["train.lr"], 0.05);
  EXPECT_EQ(json["summary"]["time"]["compute_s"], 3.5);
  EXPECT_EQ(json["tags"].dump(), "[\"paper\"]");
}

TEST(ExportTest, CsvQuotesWhatItMust) {
  const tests::Folder runs;
  auto store = two_runs(runs);
  const auto text = csv_of(all_details(store));
  EXPECT_THAT(text, HasSubstr("run,name,started,status,grid,tags,note,cluster.pinning,"));
  EXPECT_THAT(
      text, HasSubstr("\n20260102-030405-a,a,2026-01-02 03:04:05,done,,paper,\"a, \"\"b\"\"\",true,\"[1.0,4.0]\",2,"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
}

TEST(ExportTest, MlflowHasParametersMetricsAndStates) {
  const tests::Folder runs, target;
  auto store = two_runs(runs);
  const auto folder = target.file("mlruns");
  const char* old = std::getenv("TZ");
  const std::string before = old == nullptr ? "" : old;
  ::setenv("TZ", "TST-9", 1);  // nine hours east of Greenwich
  ::tzset();
  const auto writer = MlflowWriter::create(folder, "runs");
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  for (const auto& run : all_details(store)) {
    const auto curves = curves_of(store.database(), run.id);
    ASSERT_TRUE(curves.has_value());
    const auto added = writer->add(run, *curves);
    ASSERT_TRUE(added.has_value()) << added.error().message;
  }
  old == nullptr ? ::unsetenv("TZ") : ::setenv("TZ", before.c_str(), 1);
  ::tzset();
  std::string first;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/0")) {
    if (!entry.is_directory()) continue;
    ++count;
    const auto name = "mlruns/0/" + entry.path().filename().string();
    if (target.read(name + "/tags/mlflow.runName") == "a") first = name;
  }
  EXPECT_EQ(count, 2u);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(target.read(first + "/params/train.lr"), "0.05");
  // 2026-01-02 03:04:05 there is 2026-01-01 18:04:05 UTC: 1767225600 s at the begin of that day, and 65045 s.
  EXPECT_EQ(target.read(first + "/metrics/test.accuracy"),
            "1767290647000 0.5 1\n1767290649000 0.6 2\n1767290651000 0.75 3\n");
  EXPECT_EQ(target.read(first + "/metrics/wall_s"), "1767290645000 7.5 0\n");
  EXPECT_THAT(target.read(first + "/meta.yaml"), HasSubstr("status: 3\n"));
  EXPECT_EQ(target.read(first + "/tags/tag.paper"), "true");
  const auto again = MlflowWriter::create(folder, "runs");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, core::Errc::usage);
}

TEST(ExportTest, MlflowRunsEndAfterWholeSecondsToo) {
  for (const auto& wall : {Cell(std::int64_t{7}), Cell(7.25)}) {
    const tests::Folder target;
    const auto writer = MlflowWriter::create(target.file("mlruns"), "runs");
    ASSERT_TRUE(writer.has_value());
    RunDetails run;
    run.path = run.name = "r";
    run.status = "done";
    run.results = {{"wall_s", wall}};
    ASSERT_TRUE(writer->add(run, {}).has_value());
    std::string meta;
    for (const auto& entry : std::filesystem::directory_iterator(target.file("mlruns/0")))
      if (entry.is_directory()) meta = target.read("mlruns/0/" + entry.path().filename().string() + "/meta.yaml");
    EXPECT_THAT(meta, HasSubstr(wall.index() == 1 ? "end_time: 7000\n" : "end_time: 7250\n"));
  }
}

// What MLflow's own reader refuses: bytes that are no UTF-8, a control character in YAML. It then lists no run of the experiment.
TEST(ExportTest, MlflowCanReadARunWhateverItsTexts) {
  const tests::Folder target;
  const auto writer = MlflowWriter::create(target.file("mlruns"), "runs");
  ASSERT_TRUE(writer.has_value());
  RunDetails run;
  run.path = "r";
  run.name =
      "\xF0\x9F\x98\x80 \x7F\xC2\x85\xFF \\u \"q\"\n";  // an emoji, DEL, the NEL that YAML takes for an end of a line, no UTF-8
  run.notes = {{"paper", std::string(400, 't')}, "\xFF"};
  std::string umlauts;
  while (umlauts.size() < 6002) umlauts += "\xC3\xBC";
  run.options = {{"even", umlauts}, {"odd", "x" + umlauts}, {std::string(300, 'k'), std::string("v")}};
  ASSERT_TRUE(writer->add(run, {}).has_value());
  std::string folder;
  for (const auto& entry : std::filesystem::directory_iterator(target.file("mlruns/0")))
    if (entry.is_directory()) folder = "mlruns/0/" + entry.path().filename().string();
  EXPECT_THAT(target.read(folder + "/meta.yaml"),
              HasSubstr(R"(run_name: "\U0001f600 \U0000007f\U00000085\U0000fffd \\u \"q\"\n")"
                        "\n"));
  EXPECT_EQ(target.read(folder + "/tags/mlflow.note.content"), "\xEF\xBF\xBD");
  EXPECT_EQ(target.read(folder + "/params/even"), umlauts.substr(0, 6000));
  EXPECT_EQ(target.read(folder + "/params/odd"), "x" + umlauts.substr(0, 5998)) << "no half of a character";
  EXPECT_EQ(target.read(folder + "/tags/tag.paper"), "true");
  EXPECT_EQ(target.read(folder + "/tags/troupe.tags"), "paper " + std::string(400, 't'));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(target.path()))
    EXPECT_LE(entry.path().filename().string().size(), 250u);
}

TEST(ExportTest, NoKeyLeavesTheDirectory) {
  const tests::Folder target;
  const auto writer = MlflowWriter::create(target.file("mlruns"), "runs");
  ASSERT_TRUE(writer.has_value());
  RunDetails run;
  run.path = run.name = "r";
  run.options = {{"../../../out", std::string("x")}, {"/out", std::string("x")}, {"a/b", std::string("x")}};
  run.results = {{"../../../out", 1.0}};
  ASSERT_TRUE(writer->add(run, {{"../../../out", 1, 1, 1}}).has_value());
  EXPECT_EQ(target.entries(), 1u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(target.path()))
    EXPECT_NE(entry.path().filename(), "out");
}

}  // namespace
}  // namespace troupe::store
