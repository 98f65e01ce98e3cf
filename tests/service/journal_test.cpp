#include "core/journal.hpp"

#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/file_descriptor.hpp"
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

/// Workers take steps in turn: worker w takes the steps w + 1, w + 1 + kWorkers, … of 1 to `events`.
std::vector<JournalRecord> many(std::uint64_t events) {
  constexpr std::uint64_t kWorkers = 3;
  std::vector<JournalRecord> all;
  for (std::uint64_t k = 0; k < events; ++k) all.push_back(step_done(static_cast<std::uint32_t>(k % kWorkers), k + 1));
  return all;
}

TEST_F(JournalListTest, RememberedPlacesChangeNoAnswer) {
  write_segment(folder_, 3, many(1000));
  JournalPlaces places(16);
  std::vector<JournalQuestion> questions;
  for (const std::int64_t from : {0, 15, 16, 17, 500, 999, 1000, 2000, 31, 640}) {
    questions.push_back({.segment = 3, .from = from, .limit = 20});
    questions.push_back({.segment = 3, .member = "worker1", .from = from, .limit = 7});
    questions.push_back({.segment = 3, .step = from, .limit = 5});
    questions.push_back({.segment = 3, .member = "worker2", .step = from, .from = 300, .limit = 5});
    questions.push_back({.segment = 3, .from = from, .most_bytes = 20'000});
  }
  for (const int round : {1, 2})
    for (auto question : questions) {
      question.run = kRunName;
      const auto with = list_events(folder_.path(), question, {}, &places);
      ASSERT_TRUE(with) << with.error().message;
      EXPECT_EQ(*with, list(question)) << round << " from " << question.from << " step " << question.step.value_or(-1);
    }
}

TEST_F(JournalListTest, ALatePageReadsFromARememberedPlace) {
  write_segment(folder_, 3, many(1000));
  const auto file = folder_.file(kRunName + "/journal-0003.bin");
  const core::FileDescriptor open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const auto identity = JournalPlaces::file_of(open.get());
  if (!identity) GTEST_SKIP() << "this file system does not tell when a file was made";
  JournalPlaces places(16);
  const JournalQuestion last{.run = kRunName, .segment = 3, .from = 990};
  ASSERT_TRUE(list_events(folder_.path(), last, {}, &places));
  EXPECT_EQ(places.known(*identity), 62U) << "16, 32, … 992";
  // What is before the place is not read: damage there is not seen.
  auto text = folder_.read(kRunName + "/journal-0003.bin");
  const auto whole = text;
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put(static_cast<char>(text[100] ^ 1));
  const auto again = list_events(folder_.path(), last, {}, &places);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)["events"].size(), 10U);
  EXPECT_EQ((*again)["events"][0]["until"], "3/worker0#330");
  EXPECT_FALSE(list_events(folder_.path(), {.run = kRunName, .segment = 3}, {}, &places)) << "from the begin on it is";
}

TEST_F(JournalListTest, ARewrittenSegmentIsReadFromItsBegin) {
  write_segment(folder_, 3, many(1000));
  JournalPlaces places(16);
  const JournalQuestion late{.run = kRunName, .segment = 3, .from = 900};
  ASSERT_TRUE(list_events(folder_.path(), late, {}, &places));
  auto other = many(1000);
  const auto first = records();
  other.insert(other.begin(), first.begin(), first.end());
  const auto file = folder_.file(kRunName + "/journal-0003.bin");
  std::filesystem::remove(file);
  write_segment(folder_, 3, other);
  const auto found = list_events(folder_.path(), late, {}, &places);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, list({.segment = 3, .from = 900}));
  // In place, so that it is the same file: its records are elsewhere.
  write_segment(folder_, 4, many(1000));
  std::ofstream(file, std::ios::binary) << folder_.read(kRunName + "/journal-0004.bin");
  const auto same = list_events(folder_.path(), late, {}, &places);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(*same, list({.segment = 3, .from = 900}));
}

TEST(JournalPlacesTest, TheyAreBounded) {
  JournalPlaces places(1);
  const auto place = [](std::int64_t record, std::size_t members) {
    JournalPlace one{.record = record, .offset = static_cast<std::uint64_t>(record) * 10};
    for (std::size_t m = 0; m < members; ++m) one.counts[fmt::format("worker{}", m)] = 1;
    return one;
  };
  const JournalFile few{.inode = 1}, many{.inode = 2};
  for (std::int64_t k = 1; k <= 100'000; ++k) places.remember(few, place(k, 1));
  EXPECT_LE(places.known(few), JournalPlaces::kMostPlaces);
  EXPECT_GE(places.known(few), JournalPlaces::kMostPlaces / 4);
  EXPECT_EQ(places.before(few, 0, {}).record, 0);
  const auto near = places.before(few, 77'777, {}).record;
  EXPECT_LE(near, 77'777);
  EXPECT_GT(near, 77'777 - 1024) << "places stay spread over the file";
  for (std::int64_t k = 1; k <= 1000; ++k) places.remember(many, place(k, 1000));
  EXPECT_LE(places.known(many) * 1000, JournalPlaces::kMostEntries);
  for (std::uint64_t inode = 10; inode < 10 + JournalPlaces::kMostFiles; ++inode)
    places.remember({.inode = inode}, place(1, 1));
  EXPECT_EQ(places.known(few), 0U) << "the one used longest ago goes";
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
