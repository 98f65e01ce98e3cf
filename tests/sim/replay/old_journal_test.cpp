// Journals of version 1, in which the optimizer's step had the number of the worker's step.
#include <fstream>

#include <gtest/gtest.h>

#include "core/journal.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

/// Rewrites the run's journal as version 0.1 wrote it; `version` is the version in its header.
void write_as_old(const SmallRun& run, char version) {
  const auto path = run.run_directory() / "journal-0001.bin";
  auto records = run.journal();
  for (auto& record : records) {
    if (record.kind != static_cast<std::uint16_t>(strategies::EventKind::step_done)) continue;
    auto [worker, event] = strategies::decode_worker_event(record).value();
    auto& done = std::get<strategies::StepDone>(event);
    done.optimizer.t = done.step + 1;
    record = strategies::encode(worker, event);
  }
  std::filesystem::remove(path);
  {
    auto writer = core::JournalWriter::create(path.string());
    for (const auto& record : records) ASSERT_TRUE(writer->append(record.kind, record.payload));
    ASSERT_TRUE(writer->flush());
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(8);
  file.put(version);
}

TEST(OldJournal, RecordedNumbersOfOptimizerStepsHold) {
  // Workers push raw gradients, so the number means nothing to them. With backup workers they also skip steps.
  const std::vector<std::vector<std::string>> runs{
      {"strategy.name=downpour", "strategy.server_optimizer=adam", "train.lr=0.003"},
      {"strategy.name=bsp", "strategy.backup=1", "cluster.workers=3", "train.optimizer=adam", "train.lr=0.003"},
      {"strategy.name=easgd", "train.optimizer=adam", "train.lr=0.003"}};
  for (const auto& options : runs) {
    SmallRun run(options);
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    write_as_old(run, 1);
    const auto report = replayed(run);
    ASSERT_TRUE(report) << options.front() << ": " << report.error().message;
    expect_whole(*report, end);
  }
}

TEST(OldJournal, JournalsOfThisVersionAreReadAsRecorded) {
  SmallRun run({"strategy.name=downpour", "strategy.server_optimizer=adam", "train.lr=0.003"});
  ASSERT_FALSE(run.train().failed);
  write_as_old(run, 2);
  const auto report = replayed(run);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::diverged);
  EXPECT_NE(report.error().message.find("StepDone"), std::string::npos) << report.error().message;
}

}  // namespace
}  // namespace troupe::tests
