// Whole runs of real actors, replayed: the replay reaches every recorded hash or names the first divergence.
#include <gtest/gtest.h>

#include "experiment/directory/run_directory.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;

/// 3 workers, 2 shards, snapshots during the run.
Options replay_options_of(const std::string& strategy, const Options& more = {}) {
  Options options{"strategy.name=" + strategy,     "cluster.workers=3", "cluster.servers=2", "run.epochs=2",
                  "run.checkpoint_every=15 steps", "train.lr=0.03"};
  if (strategy == "eamsgd") options.emplace_back("train.optimizer=nesterov");
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

void expect_same(const Options& options) {
  SmallRun run(options);
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->segments.size(), 1U);
  expect_whole(*report, end);
  EXPECT_GE(report->segments.front().hashes, 6U);  // several snapshots
  EXPECT_EQ(report->summary.samples, end.summary.samples);
  EXPECT_EQ(report->summary.epochs, end.summary.epochs);
  EXPECT_NEAR(report->summary.train_loss, end.summary.train_loss, 1e-9);
  EXPECT_EQ(report->summary.test_accuracy, end.summary.test_accuracy);
  EXPECT_EQ(report->summary.exchange_count, end.summary.exchange_count);
  EXPECT_EQ(report->summary.exchange_bytes, end.summary.exchange_bytes);
  EXPECT_EQ(report->summary.exchange_dropped, end.summary.exchange_dropped);
  EXPECT_EQ(report->summary.staleness_max, end.summary.staleness_max);
}

void expect_same_epochs(const SmallRun& run, const experiment::RunEnd& end) {
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->summary.epochs, end.summary.epochs);
  EXPECT_NEAR(report->summary.train_loss, end.summary.train_loss, 1e-9);
}

// 210 samples in batches of 20 or 50: the last one of an epoch wraps around. The second session stops within an epoch.
TEST(Replay, EpochsAndTheLossOfTheLastOneAreTheRunsInEverySession) {
  for (const auto* strategy : {"easgd", "bsp"}) {
    SCOPED_TRACE(strategy);
    SmallRun run({"strategy.name=" + std::string(strategy), "data.train_samples=210", "run.epochs=2"});
    expect_same_epochs(run, run.train());
    const auto stopped = run.resume({"run.epochs=4", "cluster.synthetic_step_ms=40", "run.max_seconds=0.1"});
    EXPECT_EQ(stopped.summary.stopped_by, "max_seconds");
    expect_same_epochs(run, stopped);
    expect_same_epochs(run, run.resume({"run.epochs=5", "cluster.synthetic_step_ms=0", "run.max_seconds=0"}));
    Options last{"run.epochs=6", "data.drop_tail=true"};
    if (strategy == std::string("easgd")) last.emplace_back("data.batch=50");  // in step it stays
    expect_same_epochs(run, run.resume(last));
  }
}

TEST(Replay, EpochsOfSeveralSegmentsAreTheRuns) {
  const auto bounded = train_bounded({"strategy.name=easgd", "run.epochs=6", "run.journal=30 KB", "model.widths=[4]"});
  expect_same_epochs(*bounded.run, bounded.end);
}

TEST(Replay, EveryStrategyReachesEveryHash) {
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    expect_same(replay_options_of(row.name));
  }
}

TEST(Replay, OptionsOfEveryStrategyReachEveryHash) {
  const std::vector<std::pair<std::string, Options>> variants{
      {"bsp", {"strategy.combine=weights", "strategy.average_momentum=true"}},
      {"bsp", {"strategy.backup=1", "cluster.slowdown=[1, 1, 5]"}},
      {"easgd", {"strategy.tau=1", "strategy.overlap=skip"}},
      {"easgd", {"strategy.tau=2", "strategy.overlap=wait", "cluster.slowdown=[1, 2, 3]"}},
      {"downpour", {"strategy.n_push=2", "strategy.n_fetch=3", "strategy.overlap=skip"}},
      {"downpour", {"strategy.server_optimizer=adam", "train.lr=0.003", "strategy.staleness_aware=true"}},
      {"ssp", {"strategy.s=1", "strategy.steps_per_clock=2", "strategy.overlap=wait", "cluster.slowdown=[1, 2, 1]"}},
      {"bsp", {"strategy.backup=1", "train.optimizer=adam", "train.lr=0.003"}},
      {"local_sgd", {"strategy.tau=4"}},
      {"diloco", {"strategy.tau=4", "strategy.fragments=2", "strategy.delay=1"}},
      {"diloco", {"strategy.tau=3", "strategy.quorum=2", "cluster.slowdown=[1, 1, 4]"}},
      {"mixed", {"strategy.group_size=2", "strategy.ema=0.9"}},
      {"mixed", {"strategy.group_size=2", "strategy.inner=easgd", "strategy.tau=2"}},
      {"gossip", {"strategy.p=0.8", "cluster.slowdown=[1, 3, 1]"}},
      {"bsp", {"train.accumulate=4"}},
      {"easgd",
       {"data.validation=\"0.25\"", "train.lr_policy=plateau", "train.lr_patience=1",
        "run.evaluate_every=\"7 steps\""}},
      {"bsp",
       {"data.validation=\"300\"", "train.lr_policy=plateau", "train.lr_patience=1", "run.evaluate_every=\"7 steps\""}},
      {"easgd",
       {"data.validation=\"0.25\"", "train.lr_policy=plateau", "train.lr_patience=1", "run.evaluate_every=\"7 steps\"",
        "run.evaluation=beside"}},
      {"bsp", {"train.ema=0.9"}},
      {"easgd", {"train.ema=0.9", "strategy.tau=2"}},
      {"gossip", {"train.ema=0.9"}},
      {"pairs", {"train.ema=0.9"}},
      {"bsp", {"train.optimizer=adamw", "train.lr=0.003", "train.label_smoothing=0.1"}},
      {"downpour", {"strategy.server_optimizer=rmsprop", "train.rmsprop_epsilon=inside", "train.lr=0.003"}},
      {"easgd", {"train.accumulate=5", "train.lr_policy=cosine"}},
      {"bsp", {"exchange.endpoint=inproc"}},
      {"easgd", {"exchange.endpoint=inproc", "strategy.tau=1", "strategy.overlap=skip"}},
      {"ssp", {"exchange.endpoint=inproc", "strategy.s=1"}},
      {"gossip", {"exchange.endpoint=inproc", "strategy.p=0.8"}},
      {"mixed", {"exchange.endpoint=inproc", "strategy.group_size=2", "strategy.ema=0.9"}},
  };
  for (const auto& [strategy, more] : variants) {
    SCOPED_TRACE(testing::Message() << strategy << " " << testing::PrintToString(more));
    expect_same(replay_options_of(strategy, more));
  }
}

TEST(Replay, StatisticsOfBatchNormalisationAreAmongTheHashes) {
  expect_same(replay_options_of(
      "easgd", {"model.name=own", R"(model.layers=[{type="flatten"}, {type="linear", outputs=16}, {type="batch_norm"},)"
                                  R"( {type="relu"}, {type="linear", outputs=10}])"}));
}

TEST(Replay, NeuronsSpreadOverRanksHaveTheBitsOfTheRun) {
  expect_same(replay_options_of("easgd", {"model.parallel=neurons", "cluster.threads_per_worker=[2, 3, 1]"}));
}

TEST(Replay, AResumedRunHasASegmentPerSession) {
  SmallRun run(replay_options_of("downpour", {"strategy.server_optimizer=momentum"}));
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"run.epochs=3"});
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run, {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->segments.size(), 2U);
  EXPECT_TRUE(report->segments[0].complete && report->segments[1].complete);
  EXPECT_GT(report->segments[1].hashes, 0U);
}

/// The size of all segments but the two newest, which stay however large their start states are.
std::uintmax_t old_journal_bytes(const SmallRun& run) {
  const auto segments = experiment::RunDirectory::open(run.run_directory().string())->journals().value();
  std::uintmax_t sum = 0;
  for (std::size_t k = 0; k + 2 < segments.size(); ++k) {
    sum += std::filesystem::file_size(segments[k].path);
    for (const auto& beside : {segments[k].start, segments[k].config})
      if (!beside.empty()) sum += std::filesystem::file_size(beside);
  }
  return sum;
}

/// Segments that begin in the middle of the run, with unread peer messages and pending answers; old segments are removed.
TEST(Replay, ABoundedJournalKeepsItsNewestSegments) {
  const std::vector<std::pair<std::string, Options>> variants{
      {"easgd", {"strategy.tau=1", "strategy.overlap=skip", "cluster.slowdown=[1, 2, 1]"}},
      {"easgd", {"strategy.tau=1", "strategy.overlap=wait"}},
      {"gossip", {"strategy.p=0.9", "cluster.slowdown=[1, 3, 1]"}},
      {"downpour", {"strategy.n_push=2", "strategy.n_fetch=3", "strategy.overlap=skip"}},
      {"ssp", {"strategy.s=2", "strategy.steps_per_clock=2"}},
      {"diloco", {"strategy.tau=4", "strategy.fragments=2", "strategy.delay=1"}},
      {"bsp", {}},
  };
  for (const auto& [strategy, more] : variants) {
    SCOPED_TRACE(testing::Message() << strategy << " " << testing::PrintToString(more));
    auto options = replay_options_of(strategy, more);
    options.insert(options.end(),
                   {"run.journal=60 KB", "run.epochs=6", "model.widths=[4]", "run.checkpoint_every=1 epoch"});
    const auto [run, end] = train_bounded(options);
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto report = replayed(*run);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GE(report->segments.size(), 2U);
    expect_whole(*report, end);
    EXPECT_LE(old_journal_bytes(*run), 60'000U);
    for (const auto* removed : {"journal-0001.bin", "journal-0001.config.toml"})
      EXPECT_FALSE(std::filesystem::exists(run->run_directory() / removed)) << removed;
  }
}

TEST(Replay, ScheduleReplaysWithOtherNumbers) {
  SmallRun run(replay_options_of("easgd", {"strategy.tau=2"}));
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run, {"strategy.alpha=0.1"});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->segments.front().replayed, report->segments.front().events);
  EXPECT_NE(report->summary.center_hash, end.summary.center_hash);
  EXPECT_EQ(report->summary.steps, end.summary.steps);
  const auto other = replayed(run, {"strategy.tau=3"});
  ASSERT_FALSE(other) << "another period needs another schedule";
  EXPECT_EQ(other.error().code, core::Errc::config);
  EXPECT_NE(other.error().message.find("strategy.tau may change it"), std::string::npos) << other.error().message;
}

TEST(Replay, WithoutAJournalThereIsNothingToReplay) {
  SmallRun run({"run.journal=off"});
  ASSERT_FALSE(run.train().failed);
  const auto report = replayed(run);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::tests
