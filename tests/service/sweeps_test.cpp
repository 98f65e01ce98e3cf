// Sweeps over HTTP.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "experiment/sweep/record.hpp"
#include "service/assets/embedded.hpp"
#include "service/runs/sweep_records.hpp"
#include "tests/service/schema_check.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using nlohmann::json;
using testing::HasSubstr;

sweep::Record small_record() {
  sweep::Record record;
  record.file = "a.toml";
  record.metric = "test.accuracy";
  record.method = "tpe";
  record.schedule = "asha";
  record.rungs = {1, 3};
  record.most_trials = 9;
  record.most_epochs = 20;
  record.state = "running";
  record.parameters = {{.key = "train.lr", .kind = sweep::Kind::real, .low = 0.01, .high = 1, .log = true},
                       {.key = "strategy.name", .kind = sweep::Kind::choice, .choices = {"\"bsp\"", "\"easgd\""}}};
  record.trials = {{.trial = 0,
                    .name = "000_bsp",
                    .settings = {{"train.lr", "0.1"}, {"strategy.name", "\"bsp\""}},
                    .scores = {0.5, 0.625},
                    .status = "done",
                    .directory = "/elsewhere/a/20260102-030405-000_bsp",
                    .scored_s = {1, 3}},
                   {.trial = 1,
                    .name = "001_easgd",
                    .settings = {{"train.lr", "1"}, {"strategy.name", "\"easgd\""}},
                    .scores = {std::nullopt},
                    .status = "diverged",
                    .scored_s = {2}}};
  record.ranking = {0, 1};
  record.importance = {0.75, 0.25};
  return record;
}

json answered(const Served& served, const std::string& path, const std::string& target) {
  static const auto document = json::parse(embedded_openapi());
  const auto reply = served.get(target);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(misfit_of_answer(document, "get", path, reply.status, reply.json()), "");
  return reply.json();
}

TEST(SweepsApiTest, ListsAndShowsSweepsAndNothingElse) {
  const Served served({}, [](const tests::Folder& folder) {
    Served::one_run(folder);
    folder.write("a/sweep.json", to_json(small_record()).dump());
    folder.write("damaged/sweep.json", "{");
    folder.write("grid/results.jsonl", "");
    std::filesystem::create_directory_symlink(folder.file("a"), folder.file("link"));
  });

  const auto list = answered(served, "/api/v1/sweeps", "/api/v1/sweeps");
  ASSERT_EQ(list["sweeps"].size(), 1U) << list;
  EXPECT_EQ(list["sweeps"][0]["name"], "a");
  EXPECT_EQ(list["sweeps"][0]["best"], 0.625);
  EXPECT_EQ(list["sweeps"][0]["trials"], 2);
  EXPECT_EQ(list["sweeps"][0]["epochs_trained"], 4);
  EXPECT_EQ(list["sweeps"][0]["most_epochs"], 20);
  EXPECT_EQ(list["sweeps"][0]["state"], "interrupted") << "no process holds its lock";
  ASSERT_EQ(list["problems"].size(), 1U);
  EXPECT_THAT(list["problems"][0].get<std::string>(), HasSubstr("damaged/sweep.json"));

  const auto one = answered(served, "/api/v1/sweeps/{name}", "/api/v1/sweeps/a");
  EXPECT_EQ(one["trials"][0]["run"], "a/20260102-030405-000_bsp");
  EXPECT_TRUE(one["trials"][1]["run"].is_null());
  EXPECT_EQ(one["most_epochs"], 20);
  EXPECT_EQ(one["importance"], json({0.75, 0.25}));
  EXPECT_EQ(one["parameters"][1]["choices"], json({"bsp", "easgd"}));
  ASSERT_EQ(one["history"].size(), 3U);
  EXPECT_EQ(one["history"][2]["best"], 0.625);
  EXPECT_EQ(one["history"][2]["epochs"], 4);
}

TEST(SweepsApiTest, ANewSweepIsListed) {
  const Served served;
  store::write_done(served.folder(), "a/20260102-030405-000_bsp", 0.5);
  served.folder().write("a/sweep.json", to_json(small_record()).dump());
  EXPECT_TRUE(tests::eventually([&] { return served.get("/api/v1/sweeps").json()["sweeps"].size() == 1; }));
}

TEST(SweepOverviewsTest, ARecordIsReadAgainWhenItHasChanged) {
  const tests::Folder runs;
  const std::vector<std::string> names{"a", "none"};
  const auto age = [&] {
    std::filesystem::last_write_time(runs.file("a/sweep.json"),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  };
  runs.write("a/sweep.json", to_json(small_record()).dump());
  SweepOverviews overviews(runs.path());
  EXPECT_EQ(overviews.list(names).sweeps.size(), 1U);
  EXPECT_EQ(overviews.list(names).sweeps[0]["best"], 0.625);
  EXPECT_EQ(overviews.read(), 2U) << "it was written just now, and may change within the same tick of the clock";
  age();
  EXPECT_EQ(overviews.list(names).sweeps[0]["state"], "interrupted");
  EXPECT_EQ(overviews.list(names).sweeps[0]["state"], "interrupted");
  EXPECT_EQ(overviews.read(), 3U);

  auto better = small_record();
  better.trials[0].scores = {0.5, 0.75};
  std::filesystem::remove(runs.file("a/sweep.json"));
  runs.write("a/sweep.json", to_json(better).dump());
  EXPECT_EQ(overviews.list(names).sweeps[0]["best"], 0.75);
  runs.write("a/sweep.json", "{");
  EXPECT_TRUE(overviews.list(names).sweeps.empty());
  EXPECT_EQ(overviews.list(names).problems.size(), 1U);
  std::filesystem::remove(runs.file("a/sweep.json"));
  EXPECT_TRUE(overviews.list(names).problems.empty());
}

TEST(SweepsApiTest, OtherNamesAreUnknown) {
  const Served served;
  served.folder().write("a/sweep.json", to_json(small_record()).dump());
  std::filesystem::create_directory_symlink(served.folder().file("a"), served.folder().file("link"));
  for (const char* name : {"none", "link", ".hidden", "a%2fb"})
    EXPECT_EQ(served.get(std::string("/api/v1/sweeps/") + name).status, 404) << name;
  for (const char* name : {"..", "%2e%2e", "a%2f.."})
    EXPECT_EQ(served.get(std::string("/api/v1/sweeps/") + name).status, 400) << name;
  served.folder().write("damaged/sweep.json", "[]");
  EXPECT_EQ(served.get("/api/v1/sweeps/damaged").status, 500);
}

}  // namespace
}  // namespace troupe::service
