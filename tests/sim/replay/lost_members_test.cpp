// Journals of runs that lost a worker: the events of the lost worker end where those of its successor begin.
#include <gtest/gtest.h>

#include "experiment/run_spec.hpp"
#include "sim/replay/recording.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

using Records = std::vector<core::JournalRecord>;
using experiment::LostRecord, experiment::SnapshotRecord;
using strategies::MembershipChanged, strategies::Started, strategies::StepDone;

void write_journal_of_losses(const std::filesystem::path& path, const Records& records) {
  std::filesystem::remove(path);
  auto writer = core::JournalWriter::create(path.string());
  for (const auto& record : records) ASSERT_TRUE(writer->append(record.kind, record.payload));
  ASSERT_TRUE(writer->flush());
}

core::JournalRecord of(strategies::WorkerId worker, const strategies::WorkerEvent& event) {
  return strategies::encode(worker, event);
}

/// Three workers; the last one is lost.
class LostMember : public testing::Test {
 protected:
  replay::Recording read(const Records& records, const strategies::Membership* members = nullptr) const {
    const auto path = run_.directory() / "journal.bin";
    write_journal_of_losses(path, records);
    auto recording = replay::read_recording(path.string(), spec_, members);
    if (!recording) throw std::runtime_error(recording.error().message);
    return std::move(*recording);
  }

  SmallRun run_{{"strategy.name=ssp", "cluster.workers=3"}};
  experiment::RunSpec spec_ = experiment::build_run_spec(*run_.settings(), true).value();
  // The other workers have started and received the loss.
  Records others_{of(0, Started{}), of(1, Started{}), of(0, MembershipChanged{{1, {0, 1}}})};
  core::JournalRecord lost_ = encode(LostRecord{2, true, {}});
  Records newcomer_{of(2, Started{40}), encode(SnapshotRecord{false, 2, strategies::kParams, 7}),
                    of(2, StepDone{.step = 40})};

  static Records joined(std::initializer_list<Records> parts) {
    Records all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
};

TEST_F(LostMember, RecordsOfItsReplacementAreNotItsOwn) {
  const auto recording = read(joined({others_, {lost_}, newcomer_}));
  EXPECT_TRUE(recording.workers[2].empty());
  EXPECT_TRUE(recording.lost_members);
  EXPECT_EQ(recording.left, (std::vector<strategies::WorkerId>{0, 1}));
}

TEST_F(LostMember, LossCountsBeforeAnyMemberReportsIt) {
  const auto recording = read(joined({{of(0, Started{}), lost_}, newcomer_}));
  EXPECT_TRUE(recording.workers[2].empty());
  EXPECT_TRUE(recording.lost_members);
}

TEST_F(LostMember, KeepsItsRecordsAndThoseThatArrivedLate) {
  const Records before{of(2, Started{}), of(2, StepDone{})}, late{of(2, StepDone{.step = 1})};
  const auto recording = read(joined({before, others_, {lost_}, late, newcomer_}));
  ASSERT_EQ(recording.workers[2].size(), 3U);
  EXPECT_EQ(std::get<StepDone>(std::get<strategies::WorkerEvent>(recording.workers[2].back())).step, 1U);
}

TEST_F(LostMember, LostTwiceCountsOnceInASegment) {
  const Records first{of(2, Started{}), of(2, StepDone{})};
  const auto recording = read(joined({first, others_, {lost_}, newcomer_, {lost_}, newcomer_}));
  EXPECT_EQ(recording.workers[2].size(), 2U);
}

TEST_F(LostMember, MemberFromTheSegmentsBeginningHasNoStart) {
  const strategies::Membership all{0, {0, 1, 2}};
  const auto recording = read(joined({{of(2, StepDone{.step = 30})}, others_, {lost_}, newcomer_}), &all);
  EXPECT_EQ(recording.workers[2].size(), 1U);
}

TEST_F(LostMember, WithoutALossRecordTheFirstStartIsItsOwn) {
  const auto recording = read(joined({{of(2, Started{}), of(2, StepDone{})}, others_, newcomer_}));
  EXPECT_EQ(recording.workers[2].size(), 2U);
}

/// A whole run: the newcomer's parameters are not those of an initial member.
TEST(LostMembers, ANewcomerInTheSegmentIsNoDivergence) {
  SmallRun run({"strategy.name=ssp", "data.train_samples=120", "train.lr=0.03", "run.checkpoint_every=2 steps"});
  ASSERT_FALSE(run.train().failed);
  Records records;
  for (const auto& record : run.journal()) {
    const auto event = strategies::decode_worker_event(record);
    const auto snapshot = experiment::decode_snapshot(record);
    if (record.kind == encode(experiment::EndRecord{}).kind) continue;  // as after a kill of the process
    if (event && event->worker == 1) continue;
    if (snapshot && !snapshot->server && snapshot->member == 1) continue;
    records.push_back(record);
  }
  for (const auto& record :
       {encode(LostRecord{1, true, {}}), of(1, Started{40}), encode(SnapshotRecord{false, 1, strategies::kParams, 7})})
    records.push_back(record);
  write_journal_of_losses(run.run_directory() / "journal-0001.bin", records);
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->complete());
}

}  // namespace
}  // namespace troupe::tests
