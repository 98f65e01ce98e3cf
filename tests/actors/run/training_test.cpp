// Whole runs: the promises of strategies must hold when actors execute them.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "experiment/directory/run_records.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using experiment::RunEnd;

double largest_difference(const std::map<std::string, std::vector<float>>& a,
                          const std::map<std::string, std::vector<float>>& b) {
  double largest = 0;
  for (const auto& [name, values] : a) {
    const auto& others = b.at(name);
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(values[i]) - others[i]));
  }
  return largest;
}

/// Every sample position of every epoch was leased, and no lease was granted twice. (The last batch wraps around to the first positions.)
void expect_every_sample_once(const std::vector<core::JournalRecord>& journal, std::int64_t size,
                              std::uint32_t epochs) {
  std::map<std::uint32_t, std::vector<int>> seen;
  std::set<std::uint64_t> indices;
  for (const auto& record : journal) {
    const auto granted = experiment::decode_lease(record);
    if (!granted) continue;
    EXPECT_TRUE(indices.insert(granted->lease.index).second)
        << "lease " << granted->lease.index << " was granted twice";
    auto& counts = seen[granted->lease.epoch];
    counts.resize(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < granted->lease.count; ++i)
      ++counts[static_cast<std::size_t>((granted->lease.first + i) % size)];
  }
  ASSERT_EQ(seen.size(), epochs);
  for (const auto& [epoch, counts] : seen)
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 0) << "epoch " << epoch;
}

TEST(Training, BspReachesTheSameParametersWithOneTwoAndFourWorkers) {
  std::map<std::string, std::vector<float>> one;
  for (const auto& [workers, batch] : {std::pair{1, 40}, {2, 20}, {4, 10}}) {
    SmallRun run({"cluster.workers=" + std::to_string(workers), "data.batch=" + std::to_string(batch), "run.epochs=2"});
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(end.summary.steps, 60U * static_cast<unsigned>(workers));
    EXPECT_EQ(end.summary.samples, 2400U);
    if (one.empty()) {
      one = run.tensors();
    } else {
      // The mean of means adds in another order than one sum: float32 rounding of 60 steps at lr 0.1, momentum 0.9.
      EXPECT_LT(largest_difference(one, run.tensors()), 2e-4) << workers << " workers";
    }
  }
}

TEST(Training, BspTwiceWithOneSeedGivesTheSameBits) {
  for (const char* combine : {"gradients", "updates", "weights"}) {
    std::string first;
    for (int i = 0; i < 2; ++i) {
      SmallRun run({std::string("strategy.combine=") + combine, "train.lr=0.05"});
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      if (first.empty()) first = end.summary.center_hash;
      EXPECT_EQ(end.summary.center_hash, first) << combine;
    }
  }
  SmallRun other({"run.seed=2"});
  SmallRun base;
  EXPECT_NE(other.train().summary.center_hash, base.train().summary.center_hash);
}

TEST(Training, UpdatesAndGradientsAgreeUpToTheScaleOfTheSum) {
  // With sgd, Σ (−η g_i) = −(N η) (1/N) Σ g_i: for two workers, updates at η equal gradients at 2 η.
  SmallRun updates({"strategy.combine=updates", "train.optimizer=sgd", "train.lr=0.05"});
  SmallRun gradients({"strategy.combine=gradients", "train.optimizer=sgd", "train.lr=0.1"});
  ASSERT_FALSE(updates.train().failed);
  ASSERT_FALSE(gradients.train().failed);
  EXPECT_LT(largest_difference(updates.tensors(), gradients.tensors()), 1e-5);
}

TEST(Training, EasgdLearnsAndLeasesEverySampleOnce) {
  for (const char* overlap : {"off", "skip", "wait"}) {
    SmallRun run({"strategy.name=easgd", "strategy.tau=2", "cluster.workers=3", "cluster.servers=2", "run.epochs=3",
                  std::string("strategy.overlap=") + overlap});
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(end.summary.steps, 3 * 60U);
    EXPECT_GT(end.summary.test_accuracy, 0.3) << overlap;  // chance is 0.1
    EXPECT_GT(end.summary.exchange_count, 0U);
    expect_every_sample_once(run.journal(), 1200, 3);
  }
}

TEST(Training, EveryRequestReachesEveryShardOnceAndInOrder) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=1", "cluster.workers=2", "cluster.servers=3"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint64_t>>> clocks;  // shard → worker → clocks
  for (const auto& record : run.journal()) {
    if (record.kind != static_cast<std::uint16_t>(strategies::EventKind::request)) continue;
    const auto event = strategies::decode_server_event(record);
    ASSERT_TRUE(event) << event.error().message;
    const auto& request = std::get<strategies::Request>(event->event);
    clocks[event->shard][request.worker].push_back(request.clock);
  }
  ASSERT_EQ(clocks.size(), 3U);
  std::uint64_t exchanges = 0;
  for (const auto& [worker, seen] : clocks.at(0)) {
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);  // τ = 1: after every step, once
    exchanges += seen.size();
  }
  EXPECT_EQ(exchanges, end.summary.exchange_count);
  EXPECT_EQ(clocks.at(1), clocks.at(0));
  EXPECT_EQ(clocks.at(2), clocks.at(0));
}

TEST(Training, ChangingTheNumberOfDecodersChangesNothing) {
  SmallRun one({"data.decode_threads=1"});
  SmallRun three({"data.decode_threads=3", "data.prefetch=6"});
  EXPECT_EQ(one.train().summary.center_hash, three.train().summary.center_hash);
}

TEST(Training, TimesAddUpToTheTimeSpentTraining) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=1", "run.epochs=3"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  for (const auto& worker : end.summary.per_worker) {
    EXPECT_GE(worker.compute_s, 0);
    EXPECT_GE(worker.exchange_s, 0);
    EXPECT_GE(worker.wait_s, 0);
    EXPECT_GE(worker.load_s, 0);
    EXPECT_LE(worker.compute_s + worker.exchange_s + worker.wait_s + worker.load_s, end.summary.wall_s);
  }
}

TEST(Training, TargetAccuracyStopsTheRun) {
  SmallRun run({"run.epochs=50", "run.target_accuracy=0.2"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_LT(end.summary.epochs, 50U);
  EXPECT_GE(end.summary.test_accuracy, 0.2);
}

TEST(Training, DivergenceNamesWorkerAndStepAndKeepsTheLastFiniteCheckpoint) {
  for (const char* strategy : {"bsp", "easgd"}) {
    SmallRun run(
        {"train.lr=1e30", "train.optimizer=sgd", std::string("strategy.name=") + strategy, "model.activation=relu"});
    const auto end = run.train();
    ASSERT_TRUE(end.failed);
    EXPECT_EQ(end.error.code, core::Errc::diverged) << end.error.message;
    EXPECT_NE(end.error.message.find("worker"), std::string::npos) << end.error.message;
    EXPECT_NE(end.error.message.find("step"), std::string::npos) << end.error.message;
    for (const auto& [name, values] : run.tensors()) {
      EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) << name;
    }
  }
}

}  // namespace
}  // namespace troupe::tests
