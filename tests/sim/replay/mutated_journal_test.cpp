// Journals with valid checksums that no run can have written: the replay reports the place.
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "sim/replay/run.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Records = std::vector<core::JournalRecord>;

class MutatedJournal : public testing::TestWithParam<std::string> {
 protected:
  MutatedJournal()
      : run_({"strategy.name=" + GetParam(), "data.train_samples=80", "train.lr=0.003", "model.widths=[2]",
              "run.checkpoint_every=1 steps"}) {
    const auto end = run_.train();
    if (end.failed) throw std::runtime_error(end.error.message);
    records_ = run_.journal();
  }

  /// Replays `records` instead. An error of the replay names a place in the file, or a member's event.
  core::Result<replay::ReplayReport> replayed(const Records& records) const {
    const auto path = run_.run_directory() / "journal-0001.bin";
    std::filesystem::remove(path);
    auto writer = core::JournalWriter::create(path.string());
    for (const auto& record : records) EXPECT_TRUE(writer->append(record.kind, record.payload));
    EXPECT_TRUE(writer->flush());
    auto report = replay::replay_run({run_.run_directory().string()}, backend());
    if (!report) {
      const auto& [code, message] = report.error();
      EXPECT_TRUE(code == core::Errc::corrupt || code == core::Errc::diverged) << message;
      bool named = false;
      for (const auto* place : {"byte ", "event ", "plan.json"})
        named = named || message.find(place) != std::string::npos;
      EXPECT_TRUE(named) << message;
    }
    return report;
  }

  SmallRun run_;
  Records records_;
};

TEST_P(MutatedJournal, AStepOfAnotherWorkerIsADivergence) {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].kind != static_cast<std::uint16_t>(strategies::EventKind::step_done)) continue;
    auto moved = *strategies::decode_worker_event(records_[i]);
    moved.worker = 1 - moved.worker;
    auto records = records_;
    records[i] = strategies::encode(moved.worker, moved.event);
    const auto report = replayed(records);
    ASSERT_FALSE(report) << "record " << i;
    EXPECT_EQ(report.error().code, core::Errc::diverged) << report.error().message;
    EXPECT_NE(report.error().message.find("worker "), std::string::npos) << report.error().message;
  }
}

/// Changes one byte of a record, for each kind of record in turn.
TEST_P(MutatedJournal, ReplaysOrNamesThePlace) {
  std::map<std::uint16_t, std::vector<std::size_t>> by_kind;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (!records_[i].payload.empty()) by_kind[records_[i].kind].push_back(i);
  }
  constexpr std::uint64_t kTrials = 10;  // for each kind
  std::map<core::Errc, int> ends;
  for (const auto& [kind, places] : by_kind) {
    core::Random draw{kind, core::Purpose::strategy, 1};
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      auto records = records_;
      auto& payload = records[places[draw.below(places.size())]].payload;
      payload[draw.below(payload.size())] ^= static_cast<std::byte>(1 + draw.below(255));
      if (const auto report = replayed(records); !report) ++ends[report.error().code];
    }
  }
  EXPECT_GT(ends[core::Errc::corrupt], 0);
  EXPECT_GT(ends[core::Errc::diverged], 0);
}

INSTANTIATE_TEST_SUITE_P(Strategies, MutatedJournal,
                         testing::Values("bsp", "downpour", "ssp", "gossip", "mixed", "diloco"));

}  // namespace
}  // namespace troupe::tests
