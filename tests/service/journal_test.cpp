#include "core/journal.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "experiment/directory/run_records.hpp"
#include "service/assets/embedded.hpp"
#include "service/journal/event_list.hpp"
#include "sim/replay/result/verification.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/service/schema_check.hpp"
#include "tests/service/served.hpp"

namespace troupe::service {
namespace {

using core::JournalRecord;

const std::string kRunName(kRun);

void write_segment(const tests::Folder& folder, int number, const std::vector<JournalRecord>& records) {
  auto writer = core::JournalWriter::create(folder.file(fmt::format("{}/journal-{:04}.bin", kRunName, number))).value();
  for (const auto& record : records) ASSERT_TRUE(writer.append(record.kind, record.payload));
  ASSERT_TRUE(writer.flush());
}

JournalRecord step_done(std::uint32_t worker, std::uint64_t step) {
  strategies::StepDone done;
  done.step = step;
  return strategies::encode(worker, strategies::WorkerEvent(done));
}

/// Two workers begin, take two steps each, and the first is hashed after its first step.
std::vector<JournalRecord> records() {
  strategies::Started started;
  std::vector<JournalRecord> all{
      strategies::encode(0, strategies::WorkerEvent(started)),
      strategies::encode(1, strategies::WorkerEvent(started)),
      experiment::encode(experiment::LeaseGranted{0, {}}),
      step_done(0, 1),
      experiment::encode(experiment::SnapshotRecord{false, 0, strategies::kParams, 0xabcdef}),
      step_done(1, 1),
      step_done(0, 2),
      step_done(1, 2)};
  return all;
}

class JournalListTest : public testing::Test {
 protected:
  JournalListTest() {
    store::write_done(folder_, kRunName, 0.9);
    auto whole = records();
    whole.push_back(experiment::encode(experiment::EndRecord{}));
    write_segment(folder_, 1, whole);
    write_segment(folder_, 2, records());
  }
  [[nodiscard]] nlohmann::ordered_json list(JournalQuestion question) const {
    question.run = kRunName;
    const auto found = list_events(folder_.path(), question, {});
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(nullptr);
  }
  const tests::Folder folder_;
};

TEST_F(JournalListTest, EventsAreCountedByMemberAsReplayDoes) {
  const auto all = list({.segment = 1});
  EXPECT_EQ(all["segments"], nlohmann::json::parse("[1,2]"));
  ASSERT_EQ(all["events"].size(), 9U);
  EXPECT_EQ(all["complete"], true);
  const auto& hash = all["events"][4];
  EXPECT_EQ(hash["member"], "worker0");
  EXPECT_EQ(hash["event"], 2) << "Started, StepDone, and then this";
  EXPECT_EQ(hash["hash"], "0000000000abcdef");
  EXPECT_EQ(hash["slot"], "params");
  EXPECT_EQ(hash["until"], "1/worker0#2");
  EXPECT_EQ(all["events"][6]["until"], "1/worker0#3");
  EXPECT_EQ(all["events"][5]["until"], "1/worker1#1");
  EXPECT_EQ(all["events"][2]["event"], nullptr) << "a lease is no event of a rule";
  EXPECT_EQ(all["events"][3]["step"], 1);
}

TEST_F(JournalListTest, AListThatDoesNotReadAllSaysSo) {
  const auto all = list({.segment = 1});
  EXPECT_EQ(all["cut_off"], false);
  const auto begin = list({.segment = 1, .most_bytes = 100});
  EXPECT_EQ(begin["cut_off"], true);
  EXPECT_EQ(begin["complete"], false);
  EXPECT_LT(begin["events"].size(), all["events"].size());
  EXPECT_EQ(begin["events"][0], all["events"][0]);
}

TEST_F(JournalListTest, PartsAndConditions) {
  const auto newest = list({});
  EXPECT_EQ(newest["segment"], 2);
  EXPECT_EQ(newest["complete"], false) << "it has no end";
  const auto of_one = list({.segment = 1, .member = "worker1"});
  ASSERT_EQ(of_one["events"].size(), 3U);
  EXPECT_EQ(of_one["events"][2]["until"], "1/worker1#2");
  const auto later = list({.segment = 1, .step = 2});
  EXPECT_EQ(later["events"][0]["record"], 6);
  const auto first = list({.segment = 1, .limit = 4});
  EXPECT_EQ(first["events"].size(), 4U);
  EXPECT_EQ(first["next"], 4);
  const auto second = list({.segment = 1, .from = 4});
  EXPECT_EQ(second["events"][0]["until"], "1/worker0#2") << "what was before counts";
  EXPECT_EQ(second["next"], nullptr);
}

TEST_F(JournalListTest, EventsSayWhatTheNewestReplayFound) {
  EXPECT_EQ(list({.segment = 1})["replay"], nullptr);
  EXPECT_EQ(list({.segment = 1})["events"][4]["replay"], nullptr);
  const auto bytes = std::filesystem::file_size(folder_.file(kRunName + "/journal-0001.bin"));
  const std::vector<replay::Verification> replays{
      {"2026-01-01T00:00:00Z", "0.2.0", {{1, bytes, 1, true, {{"worker0", 4}, {"worker1", 3}}, {}}}},
      {"2026-01-02T00:00:00Z",
       "0.2.1",
       {{1, bytes, 0, false, {{"worker0", 2}, {"worker1", 1}}, replay::Difference{"worker0", 2, "another hash"}}}}};
  folder_.write(kRunName + "/replay.json", replay::to_json(replays));
  const auto all = list({.segment = 1});
  EXPECT_EQ(all["replay"]["at"], "2026-01-02T00:00:00Z");
  EXPECT_EQ(all["replay"]["hashes"], 0);
  EXPECT_EQ(all["replay"]["complete"], false);
  EXPECT_EQ(all["replay"]["difference"]["event"], 2);
  EXPECT_EQ(all["events"][4]["replay"]["result"], "differs");
  EXPECT_EQ(all["events"][4]["replay"]["program"], "0.2.1");
  EXPECT_EQ(all["events"][3]["replay"]["result"], "reached");
  EXPECT_EQ(all["events"][3]["replay"]["program"], "0.2.1");
  EXPECT_EQ(all["events"][6]["replay"]["program"], "0.2.0") << "the newer one did not come so far";
  EXPECT_EQ(all["events"][2]["replay"], nullptr) << "a lease is no event of a rule";
  EXPECT_EQ(list({.segment = 2})["replay"], nullptr);
  folder_.write(kRunName + "/replay.json", "{");
  EXPECT_EQ(list({.segment = 1})["replay"], nullptr);
  EXPECT_EQ(list({.segment = 1})["events"].size(), 9U) << "a damaged one hides no event";
}

TEST_F(JournalListTest, AJournalThatIsBeingWrittenIsReadAsFarAsItGoes) {
  const auto file = folder_.file(kRunName + "/journal-0002.bin");
  const auto whole = std::filesystem::file_size(file);
  for (auto size = whole - 1; size > whole - 75; --size) {
    std::filesystem::resize_file(file, size);
    EXPECT_EQ(list({})["events"].size(), 7U) << size;
  }
  std::filesystem::resize_file(file, 5);
  EXPECT_TRUE(list({})["events"].empty());
  std::filesystem::resize_file(file, 0);
  EXPECT_TRUE(list({})["events"].empty());
}

TEST_F(JournalListTest, DamageIsNamed) {
  auto text = folder_.read(kRunName + "/journal-0002.bin");
  text[40] = static_cast<char>(text[40] ^ 1);
  folder_.write(kRunName + "/journal-0002.bin", text);
  const auto found = list_events(folder_.path(), {.run = kRunName}, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, core::Errc::corrupt);
  EXPECT_EQ(found.error().message.find(folder_.path()), std::string::npos) << "no path of the host";
}

TEST_F(JournalListTest, WhatIsNotThereIsSaid) {
  EXPECT_EQ(list_events(folder_.path(), {.run = "none"}, {}).error().code, core::Errc::config);
  EXPECT_EQ(list_events(folder_.path(), {.run = kRunName, .segment = 3}, {}).error().code, core::Errc::config);
  EXPECT_EQ(list_events(folder_.path(), {.run = kRunName, .member = "../x"}, {}).error().code, core::Errc::usage);
  std::filesystem::remove(folder_.file(kRunName + "/journal-0002.bin"));
  std::filesystem::create_symlink("journal-0001.bin", folder_.file(kRunName + "/journal-0002.bin"));
  EXPECT_EQ(list_events(folder_.path(), {.run = kRunName, .segment = 2}, {}).error().code, core::Errc::config);
}

TEST(JournalApiTest, RoutesAnswerAsDescribed) {
  const Served served(Limits{}, [](const tests::Folder& folder) {
    Served::one_run(folder);
    write_segment(folder, 1, records());
    folder.write(kRunName + "/replay.json",
                 replay::to_json({{"2026-01-01T00:00:00Z",
                                   "0.2.0",
                                   {{1, 1, 1, false, {{"worker0", 1}}, replay::Difference{"worker0", 1, "other"}}}}}));
  });
  const auto path = "/api/v1/runs/" + kRunName + "/journal";
  const auto reply = served.get(path + "?member=worker0&limit=2");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(misfit_of_answer(nlohmann::json::parse(embedded_openapi()), "get", "/api/v1/runs/{run}/journal", 200,
                             reply.json()),
            "");
  EXPECT_EQ(reply.json()["next"], 3) << "Started, the lease, and then its step";
  EXPECT_EQ(served.get(path + "?segment=2").status, 404);
  EXPECT_EQ(served.get(path + "?member=x").status, 400);
  EXPECT_EQ(served.get(path + "?limit=0").status, 400);
  EXPECT_EQ(served.get("/api/v1/runs/none/journal").status, 404);
}

}  // namespace
}  // namespace troupe::service
