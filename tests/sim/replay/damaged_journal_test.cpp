// Journals that are truncated, damaged, or contradict the run.
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "experiment/run_spec.hpp"
#include "sim/replay/recording.hpp"
#include "sim/replay/run.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

namespace fs = std::filesystem;
using Records = std::vector<core::JournalRecord>;

/// Writes the journal again, with other records.
void write_journal(const fs::path& path, const Records& records) {
  fs::remove(path);
  auto writer = core::JournalWriter::create(path.string());
  for (const auto& record : records) ASSERT_TRUE(writer->append(record.kind, record.payload));
  ASSERT_TRUE(writer->flush());
}

class DamagedJournal : public testing::Test {
 protected:
  DamagedJournal()
      : run_({"strategy.name=downpour", "data.train_samples=120", "train.lr=0.03", "run.checkpoint_every=2 steps"}) {
    const auto end = run_.train();
    if (end.failed) throw std::runtime_error(end.error.message);
    path_ = run_.run_directory() / "journal-0001.bin";
    spec_ = experiment::build_run_spec(*run_.settings(), true).value();
  }

  core::Result<replay::ReplayReport> replayed() const {
    return replay::replay_run({run_.run_directory().string()}, backend());
  }
  core::Result<replay::Recording> read() const { return replay::read_recording(path_.string(), spec_); }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes; }
  void write(const Records& records) const { write_journal(path_, records); }

  SmallRun run_;
  fs::path path_;
  experiment::RunSpec spec_;
};

TEST_F(DamagedJournal, TruncatedJournalReadsItsWholeRecords) {
  const auto whole = bytes();
  std::size_t events = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    write(whole.substr(0, size));
    const auto recording = read();
    ASSERT_TRUE(recording) << size << ": " << recording.error().message;
    ASSERT_GE(recording->events(), events) << size;
    ASSERT_EQ(recording->complete, size == whole.size());
    events = recording->events();
  }
}

TEST_F(DamagedJournal, TruncatedJournalReplaysUpToTheCut) {
  const auto whole = bytes();
  std::uint64_t hashes = 0;
  for (std::size_t size = 12; size < whole.size(); size += whole.size() / 37) {
    write(whole.substr(0, size));
    const auto report = replayed();
    ASSERT_TRUE(report) << size << ": " << report.error().message;
    EXPECT_FALSE(report->segments.front().complete);
    EXPECT_GE(report->hashes(), hashes);
    hashes = report->hashes();
    EXPECT_FALSE(report->complete());
    EXPECT_EQ(report->check().has_value(), hashes > 0) << size;
  }
  EXPECT_GT(hashes, 2U);
}

TEST_F(DamagedJournal, EveryFlippedBitIsNamedByItsOffset) {
  const auto whole = bytes();
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    write(damaged);
    const auto recording = read();
    ASSERT_FALSE(recording) << "byte " << at;
    EXPECT_EQ(recording.error().code, core::Errc::corrupt);
    EXPECT_NE(recording.error().message.find("byte"), std::string::npos) << recording.error().message;
  }
}

TEST_F(DamagedJournal, AnotherHashIsADivergenceWithAName) {
  auto records = run_.journal();
  for (auto& record : records) {
    const auto snapshot = experiment::decode_snapshot(record);
    if (!snapshot) continue;
    auto other = *snapshot;
    other.hash ^= 1;
    record = encode(other);
    break;
  }
  write(records);
  const auto report = replayed();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::diverged);
  EXPECT_NE(report.error().message.find("shard 0, event 0: center has hash"), std::string::npos)
      << report.error().message;
}

/// Removes the first record that `wanted` picks. The replay must report it.
TEST_F(DamagedJournal, AMissingRecordIsADivergence) {
  const auto records = run_.journal();
  using strategies::EventKind;
  for (const auto kind : {EventKind::step_done, EventKind::replied, EventKind::exchange_done, EventKind::request}) {
    auto fewer = records;
    const auto last = std::find_if(fewer.rbegin(), fewer.rend(),
                                   [&](const auto& r) { return r.kind == static_cast<std::uint16_t>(kind); });
    ASSERT_NE(last, fewer.rend());
    fewer.erase(std::next(last).base());
    write(fewer);
    const auto report = replayed();
    ASSERT_FALSE(report) << static_cast<int>(kind);
    EXPECT_EQ(report.error().code, core::Errc::diverged) << report.error().message;
    EXPECT_NE(report.error().message.find("event"), std::string::npos) << report.error().message;
  }
}

TEST_F(DamagedJournal, AMemberThatTheRunDoesNotHaveIsNamedByItsOffset) {
  auto records = run_.journal();
  const auto before = bytes();
  records.insert(records.begin(), strategies::encode(strategies::WorkerId{7}, strategies::Started{0}));
  write(records);
  const auto recording = read();
  ASSERT_FALSE(recording);
  EXPECT_NE(recording.error().message.find("byte 12: journal: a record of worker 7, but the run has 2"),
            std::string::npos)
      << recording.error().message;
}

/// The checksums are valid, but no run can have written it.
TEST_F(DamagedJournal, UnknownRecordsAreNamedByTheirOffset) {
  using experiment::LeaseGranted, experiment::SnapshotRecord;
  const auto of_worker = [](strategies::WorkerEvent event) {
    return strategies::encode(strategies::WorkerId{0}, event);
  };
  const std::vector<std::pair<core::JournalRecord, std::string>> cases{
      {encode(LeaseGranted{0, {.count = 67'109'864}}), "a lease of 67109864 samples"},
      {encode(LeaseGranted{0, {.count = 0}}), "a lease of 0 samples"},
      {encode(LeaseGranted{0, {.first = -1, .count = 20}}), "from -1 on"},
      {encode(LeaseGranted{0, {.first = 120, .count = 20}}), "from 120 on"},
      {encode(LeaseGranted{0, {.count = 20, .epoch_position = 2}}), "position 2"},
      {encode(LeaseGranted{7, {.count = 20}}), "worker 7"},
      {encode(SnapshotRecord{true, 0, strategies::server_state(129), 1}), "a snapshot of state[129], which no server"},
      {encode(SnapshotRecord{true, 0, strategies::kParams, 1}), "a snapshot of params, which no server"},
      {encode(SnapshotRecord{false, 0, strategies::staged(3), 1}), "a snapshot of staged[3], which no worker"},
      {encode(SnapshotRecord{true, 9, strategies::kCenter, 1}), "server 9"},
      {of_worker(strategies::Replied{.shard = 1}), "server 1"},
      {of_worker(strategies::BucketReady{.bucket = 1, .buckets = 1}), "bucket 1 of 1"},
      {of_worker(strategies::PeerMessageArrived{.from = 2, .weight = 0.5, .slot = strategies::staged(200)}),
       "worker 2"},
      {of_worker(strategies::PeerMessageArrived{.from = 1, .weight = 0.5, .slot = strategies::kParams}),
       "a peer message in params"},
      {of_worker(strategies::SendSkipped{.to = 2}), "worker 2"},
      {of_worker(strategies::MembershipChanged{{1, {0, 5}}}), "worker 5"},
      {of_worker(strategies::MembershipChanged{{1, {}}}), "without workers"},
      {strategies::encode(strategies::ShardId{0}, strategies::Request{.id = 1, .worker = 2}), "worker 2"},
  };
  const auto records = run_.journal();
  for (const auto& [record, text] : cases) {
    auto wrong = records;
    wrong.insert(wrong.begin(), record);
    write(wrong);
    const auto report = replayed();
    ASSERT_FALSE(report) << text;
    EXPECT_EQ(report.error().code, core::Errc::corrupt) << report.error().message;
    EXPECT_NE(report.error().message.find("byte 12: journal: "), std::string::npos) << report.error().message;
    EXPECT_NE(report.error().message.find(text), std::string::npos) << report.error().message;
  }
}

TEST_F(DamagedJournal, AnotherPlanIsRefused) {
  std::ofstream(run_.run_directory() / "plan.json") << "{\"other\": 1}\n";
  EXPECT_TRUE(replayed()) << "the next session's is not the segment's";
  const auto own = run_.run_directory() / "journal-0001.plan.json";
  for (const auto* text : {"{\"other\": 1}\n", ""}) {
    std::ofstream(own) << text;
    const auto report = replayed();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, core::Errc::corrupt);
    EXPECT_NE(report.error().message.find("journal-0001.plan.json"), std::string::npos) << report.error().message;
  }
  fs::remove(own);
  EXPECT_FALSE(replayed()) << "then it is the run's";
}

}  // namespace
}  // namespace troupe::tests
