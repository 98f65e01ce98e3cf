// What a replay says of each event, and the file that keeps it.
#include "sim/replay/result/verification.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "core/text/utc_text.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/folder.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

using experiment::RunRecordKind;
using replay::SegmentVerification;
using replay::Verification;
using Found = std::vector<SegmentVerification>;

/// The member whose event this record is; empty: none's.
std::string member_of(const core::JournalRecord& record) {
  if (strategies::is_worker_event(record.kind))
    return "worker" + std::to_string(strategies::decode_worker_event(record)->worker);
  if (strategies::is_server_event(record.kind))
    return "server" + std::to_string(strategies::decode_server_event(record)->shard);
  if (record.kind != static_cast<std::uint16_t>(RunRecordKind::snapshot)) return {};
  const auto snapshot = *experiment::decode_snapshot(record);
  return (snapshot.server ? "server" : "worker") + std::to_string(snapshot.member);
}

std::map<std::string, std::uint64_t> events_of(const std::vector<core::JournalRecord>& records) {
  std::map<std::string, std::uint64_t> events;
  for (const auto& record : records)
    if (const auto member = member_of(record); !member.empty()) ++events[member];
  return events;
}

class ReplayVerification : public testing::Test {
 protected:
  ReplayVerification() : run_({"strategy.name=easgd", "run.hash_every=5"}) {
    const auto end = run_.train();
    if (end.failed) throw std::runtime_error(end.error.message);
    records_ = run_.journal();
  }
  [[nodiscard]] replay::ReplayRequest request(Found& found) const {
    return {.run = run_.run_directory().string(),
            .verified = [&found](SegmentVerification segment) { found.push_back(std::move(segment)); }};
  }
  [[nodiscard]] std::uint64_t bytes() const {
    return std::filesystem::file_size(run_.run_directory() / "journal-0001.bin");
  }

  SmallRun run_;
  std::vector<core::JournalRecord> records_;
};

TEST_F(ReplayVerification, AWholeReplayReachesEveryEventOfEveryMember) {
  Found found;
  const auto report = replay::replay_run(request(found), backend());
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].segment, 1);
  EXPECT_EQ(found[0].bytes, bytes());
  EXPECT_EQ(found[0].members, events_of(records_));
  EXPECT_EQ(found[0].hashes, report->hashes());
  EXPECT_TRUE(found[0].complete);
  EXPECT_FALSE(found[0].difference);
}

TEST_F(ReplayVerification, AReplayUpToAnEventReachesThatEvent) {
  Found found;
  ASSERT_TRUE(replay::replay_until(request(found), *replay::parse_until("worker1#9"), backend()));
  ASSERT_EQ(found.size(), 1U);
  const auto whole = events_of(records_);
  EXPECT_GE(found[0].members["worker1"], 10U);
  EXPECT_LT(found[0].members["worker1"], whole.at("worker1"));
  for (const auto& [member, events] : found[0].members) EXPECT_LE(events, whole.at(member)) << member;
  EXPECT_FALSE(found[0].complete);
}

TEST_F(ReplayVerification, AReplayWithOtherNumbersVerifiesNothing) {
  Found found;
  auto asked = request(found);
  asked.overrides = {"train.lr=0.05"};
  ASSERT_TRUE(replay::replay_run(asked, backend()));
  EXPECT_TRUE(found.empty());
}

TEST_F(ReplayVerification, AnotherHashIsADifferenceAtItsEvent) {
  std::map<std::string, std::uint64_t> before;
  std::string member;
  for (auto& record : records_) {
    member = member_of(record);
    if (record.kind == static_cast<std::uint16_t>(RunRecordKind::snapshot) && member.starts_with("worker")) {
      record.payload.back() ^= std::byte{1};
      break;
    }
    if (!member.empty()) ++before[member];
  }
  const auto path = run_.run_directory() / "journal-0001.bin";
  std::filesystem::remove(path);
  auto writer = core::JournalWriter::create(path.string());
  for (const auto& record : records_) ASSERT_TRUE(writer->append(record.kind, record.payload));
  ASSERT_TRUE(writer->flush());
  Found found;
  const auto report = replay::replay_run(request(found), backend());
  ASSERT_FALSE(report);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].difference);
  EXPECT_EQ(found[0].difference->member, member);
  EXPECT_EQ(found[0].difference->event, before[member]);
  EXPECT_EQ(found[0].members[member], before[member]) << "what came before is as recorded";
  EXPECT_FALSE(found[0].complete);
  EXPECT_EQ(path.string() + ": " + found[0].difference->message, report.error().message) << "without the path";
}

Verification replay_at(const std::string& at, std::uint64_t events, std::optional<replay::Difference> difference = {}) {
  return {at, "0.2.0", {{1, 100, 2, false, {{"worker0", events}}, std::move(difference)}}};
}

TEST(ReplayFile, TheTextIsReadBack) {
  const std::vector<Verification> all{replay_at("2026-01-02T03:04:05Z", 7),
                                      replay_at(core::utc_text(0), 3, replay::Difference{"worker0", 3, "\"x\"\n"})};
  EXPECT_EQ(all[1].at, "1970-01-01T00:00:00Z");
  const auto read = replay::parse_verifications(replay::to_json(all));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, all);
  for (const auto* wrong : {"", "{}", "[]", R"({"format": 2, "replays": []})", R"({"format": 1, "replays": [{}]})"})
    EXPECT_EQ(replay::parse_verifications(wrong).error().code, core::Errc::corrupt) << wrong;
}

TEST(ReplayFile, OfAnEventTheNewestReplayThatCameSoFarCounts) {
  const std::vector<Verification> all{replay_at("a", 9), replay_at("b", 3, replay::Difference{"worker0", 3, ""}),
                                      replay_at("c", 2)};
  const auto about = [&](std::uint64_t event, std::uint64_t bytes = 100) {
    const auto found = replay::newest_about(all, 1, bytes, "worker0", event);
    return found.replay == nullptr ? "" : found.replay->at + (found.differs ? "!" : "");
  };
  EXPECT_EQ(about(1), "c");
  EXPECT_EQ(about(2), "b");
  EXPECT_EQ(about(3), "b!");
  EXPECT_EQ(about(4), "a") << "the one that ended at the difference did not come here";
  EXPECT_EQ(about(9), "");
  EXPECT_EQ(about(1, 99), "") << "the file is shorter than the one that was replayed";
  EXPECT_EQ(about(1, 200), "c") << "it has grown";
  EXPECT_EQ(replay::newest_about(all, 2, 100, "worker0", 0).replay, nullptr);
  EXPECT_EQ(replay::newest_about(all, 1, 100, "server0", 0).replay, nullptr);
  EXPECT_EQ(replay::newest_of(all, 1, 100).replay->at, "c");
  EXPECT_EQ(replay::newest_of(all, 2, 100).replay, nullptr);
}

TEST(ReplayFile, KeepsTheNewest) {
  const Folder folder;
  for (std::size_t i = 0; i < replay::kMostReplays + 2; ++i)
    ASSERT_TRUE(replay::remember(folder.path(), replay_at(std::to_string(i), i)));
  const auto kept = replay::parse_verifications(folder.read(replay::kReplayFile));
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), replay::kMostReplays);
  EXPECT_EQ(kept->front().at, "2");
  EXPECT_EQ(kept->back().at, std::to_string(replay::kMostReplays + 1));
  EXPECT_EQ(folder.entries(), 1U) << "no temporary";
}

TEST(ReplayFile, WhatItCannotReadStaysAsItIs) {
  const Folder folder;
  folder.write(replay::kReplayFile, R"({"format": 2, "later": true})");
  const auto kept = replay::remember(folder.path(), replay_at("a", 1));
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, core::Errc::corrupt);
  EXPECT_EQ(folder.read(replay::kReplayFile), R"({"format": 2, "later": true})");
  EXPECT_FALSE(replay::remember(folder.file("none"), replay_at("a", 1)));
}

}  // namespace
}  // namespace troupe::tests
