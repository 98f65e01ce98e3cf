// Every registered strategy in whole runs of real actors: it learns, resumes after an interruption, its server's journal keeps the
// promises of its documentation page, and uneven workers share the work as documented.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "strategies/host/journal_codec.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;
using strategies::Request;
using strategies::Transfer;

/// A small run of `strategy` with a suitable learning rate.
Options options_for(const std::string& strategy, Options more = {}) {
  Options options{"strategy.name=" + strategy, "run.epochs=3"};
  if (strategy == "downpour" || strategy == "ssp") options.emplace_back("train.lr=0.03");
  if (strategy == "eamsgd") options.emplace_back("train.optimizer=nesterov");
  if (strategy == "easgd" || strategy == "eamsgd") options.emplace_back("strategy.tau=2");
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// Requests by shard, in the order in which each shard processed them.
std::map<strategies::ShardId, std::vector<Request>> requests(const SmallRun& run) {
  std::map<strategies::ShardId, std::vector<Request>> all;
  for (const auto& record : run.journal()) {
    if (record.kind != static_cast<std::uint16_t>(strategies::EventKind::request)) continue;
    const auto event = strategies::decode_server_event(record);
    if (!event) throw std::runtime_error(event.error().message);
    all[event->shard].push_back(std::get<Request>(event->event));
  }
  return all;
}

TEST(Strategies, EachOneLearns) {
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    SmallRun run(options_for(row.name, {"cluster.workers=3", "cluster.servers=2"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_GT(end.summary.test_accuracy, 0.3);  // chance is 0.1
    EXPECT_GT(end.summary.exchange_count, 0U);
    for (const auto& worker : end.summary.per_worker) {
      ASSERT_EQ(worker.waits.size(), 3U + end.summary.servers);
      EXPECT_NEAR(std::accumulate(worker.waits.begin(), worker.waits.end(), 0.0), worker.wait_s, 1e-9);
      EXPECT_EQ(worker.waits[worker.worker], 0) << "who waits for itself";
      EXPECT_EQ(std::accumulate(worker.staleness.begin(), worker.staleness.end(), std::uint64_t{0}),
                worker.staleness_count);
    }
    const auto all = requests(run);
    for (const auto& [shard, seen] : all) {
      std::map<std::pair<strategies::WorkerId, strategies::ExchangeId>, int> times;
      for (const auto& request : seen) EXPECT_EQ((++times[{request.worker, request.exchange}]), 1) << "shard " << shard;
    }
  }
}

TEST(Strategies, EachOneContinuesAfterACheckpoint) {
  for (const auto& row : strategies::registry()) {
    for (const std::string optimizer : {"", "adam"}) {
      SCOPED_TRACE(row.name + " " + optimizer);
      if (!optimizer.empty() && row.name == "eamsgd") continue;
      auto options = options_for(row.name, {"run.checkpoint_every=1 epoch"});
      if (!optimizer.empty()) options.insert(options.end(), {"train.optimizer=adam", "train.lr=0.003"});
      if (row.name == "downpour" && !optimizer.empty()) options.emplace_back("strategy.server_optimizer=adam");
      SmallRun run(options);
      ASSERT_FALSE(run.train().failed);
      const auto end = run.resume({"run.epochs=5"});
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_EQ(end.summary.epochs, 5U);
      EXPECT_GT(end.summary.test_accuracy, 0.4);
    }
  }
}

TEST(Strategies, EveryServerOptimizerWorksInActors) {
  for (const std::string optimizer : {"none", "sgd", "momentum", "rmsprop", "adagrad", "adam"}) {
    SmallRun run(options_for("downpour", {"strategy.server_optimizer=" + optimizer, "cluster.servers=2",
                                          optimizer == "sgd" ? "train.lr=0.2" : "train.lr=0.01"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << optimizer << ": " << end.error.message;
    EXPECT_GT(end.summary.test_accuracy, 0.3) << optimizer;
  }
}

/// The average hardly moves in a run this short: the evaluated model is the initial network. An average that began at zero would have a
/// loss of exactly ln 10.
TEST(Strategies, AMovingAverageBeginsAsTheModelAndNotAsZeros) {
  SmallRun run(options_for("mixed", {"strategy.ema=0.9999", "cluster.workers=3", "cluster.servers=2"}));
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_GT(std::abs(end.summary.test_loss - std::log(10.0)), 1e-4);
}

TEST(Strategies, StateOfAnotherOptimizerIsDropped) {
  const std::vector<std::pair<Options, Options>> changes{
      {{"strategy.name=downpour", "strategy.server_optimizer=momentum"}, {"strategy.server_optimizer=adagrad"}},
      {{"strategy.name=downpour", "strategy.server_optimizer=adam", "train.lr=0.003"},
       {"strategy.server_optimizer=rmsprop"}},
      {{"train.optimizer=momentum"}, {"train.optimizer=adagrad", "train.lr=0.01"}},
      {{"train.optimizer=adam", "train.lr=0.003"}, {"train.optimizer=sgd"}},
      {{"train.optimizer=adam", "train.lr=0.003"}, {"strategy.name=sync_easgd"}},
      {{"strategy.name=sync_easgd"}, {"strategy.name=ssp", "train.lr=0.03"}},
  };
  for (const auto& [first, then] : changes) {
    auto options = first;
    options.insert(options.end(), {"run.epochs=1", "run.checkpoint_every=1 epoch"});
    SmallRun run(options);
    ASSERT_FALSE(run.train().failed);
    auto more = then;
    more.emplace_back("run.epochs=3");
    const auto end = run.resume(more);
    ASSERT_FALSE(end.failed) << then[0] << ": " << end.error.message;
    EXPECT_GT(end.summary.test_accuracy, 0.3) << then[0];
  }
}

TEST(Strategies, NoStepIsLostWhenTheTargetEndsTheRun) {
  // All gradients are still in the worker's sum when the first evaluation reaches the target.
  SmallRun run({"strategy.name=downpour", "strategy.n_push=1000", "strategy.n_fetch=1000", "cluster.workers=1",
                "run.epochs=3", "run.target_accuracy=0.001", "run.checkpoint_every=never"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.epochs, 1U);
  EXPECT_GT(end.summary.test_accuracy, 0.3) << "the sum was not handed in";
  const auto evaluated = actors::evaluate_checkpoint(*run.settings(), run.run_directory().string(), backend());
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  EXPECT_DOUBLE_EQ(evaluated->accuracy, end.summary.test_accuracy) << "what was saved is not what was evaluated";
}

TEST(Strategies, AdamGoesOnWithItsStateAfterAResume) {
  Options options{"train.optimizer=adam", "train.lr=0.003", "run.checkpoint_every=1 epoch"};
  auto longer = options;
  longer.emplace_back("run.epochs=4");
  SmallRun whole(longer);
  ASSERT_FALSE(whole.train().failed);
  auto first = options;
  first.emplace_back("run.epochs=2");
  SmallRun parts(first);
  ASSERT_FALSE(parts.train().failed);
  ASSERT_FALSE(parts.resume({"run.epochs=4"}).failed);
  EXPECT_EQ(parts.tensors(), whole.tensors());
}

TEST(Strategies, OneWorkerIsPlainSgdUnderEveryStrategy) {
  const Options sgd{"cluster.workers=1", "train.optimizer=momentum", "run.epochs=2", "train.lr=0.05"};
  std::map<std::string, std::vector<float>> plain;
  for (const Options& options :
       {Options{"strategy.name=bsp"},
        {"strategy.name=downpour"},
        {"strategy.name=downpour", "strategy.n_push=5", "strategy.n_fetch=5"},
        {"strategy.name=downpour", "strategy.server_optimizer=momentum"},
        {"strategy.name=ssp", "strategy.s=0"},
        {"strategy.name=ssp", "strategy.steps_per_clock=4", "strategy.overlap=wait"},
        {"strategy.name=easgd", "strategy.tau=1", "strategy.alpha_worker=0", "strategy.alpha_server=1"}}) {
    auto all = sgd;
    all.insert(all.end(), options.begin(), options.end());
    SmallRun run(all);
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    if (plain.empty()) {
      plain = run.tensors();
      continue;
    }
    const auto tensors = run.tensors();
    for (const auto& [name, values] : plain) {
      if (name.starts_with("optimizer.")) continue;
      // 120 steps in float32, summed in another order.
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(tensors.at(name)[i], values[i], 1e-3) << options[0] << name;
    }
  }
}

constexpr const char* kBatchNorm =
    "model.layers=[{type = \"flatten\"}, {type = \"linear\", outputs = 16}, {type = \"batch_norm\"}, {type = "
    "\"relu\"}, "
    "{type = \"linear\", outputs = 10}]";

TEST(Strategies, RunningStatisticsAreAveragedSavedAndTakenUpAgain) {
  for (const std::string strategy : {"bsp", "easgd"}) {
    SCOPED_TRACE(strategy);
    SmallRun run(options_for(
        strategy, {"model.name=layers", kBatchNorm, "run.checkpoint_every=1 epoch", "data.test_samples=600"}));
    const auto first = run.train();
    ASSERT_FALSE(first.failed) << first.error.message;
    EXPECT_GT(first.summary.test_accuracy, 0.4) << "evaluated with the initial mean 0 and variance 1?";
    const auto saved = run.tensors();
    EXPECT_NE(saved.at("bn1.running_mean"), std::vector<float>(16, 0));
    EXPECT_NE(saved.at("bn1.running_var"), std::vector<float>(16, 1));
    const auto evaluated = actors::evaluate_checkpoint(*run.settings(), run.run_directory().string(), backend());
    ASSERT_TRUE(evaluated) << evaluated.error().message;
    EXPECT_DOUBLE_EQ(evaluated->accuracy, first.summary.test_accuracy) << "not what the run evaluated";
    const auto end = run.resume({"run.epochs=5"});
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_GT(end.summary.test_accuracy, 0.4);
  }
}

TEST(Strategies, NeuronsSpreadOverRanksTrainAsTheUnsplitModel) {
  std::map<std::string, std::vector<float>> plain;
  double accuracy = 0;
  for (const std::string parallel : {"none", "neurons"}) {
    SCOPED_TRACE(parallel);
    SmallRun run(options_for("bsp", {"model.parallel=" + parallel, "cluster.threads_per_worker=3", "run.epochs=1",
                                     "run.checkpoint_every=1 epoch"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto evaluated = actors::evaluate_checkpoint(*run.settings(), run.run_directory().string(), backend());
    ASSERT_TRUE(evaluated) << evaluated.error().message;
    EXPECT_DOUBLE_EQ(evaluated->accuracy, end.summary.test_accuracy);
    if (parallel == "none") {
      plain = run.tensors();
      accuracy = end.summary.test_accuracy;
      continue;
    }
    EXPECT_NEAR(end.summary.test_accuracy, accuracy, 0.02);
    const auto tensors = run.tensors();
    for (const auto& [name, values] : plain)
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(tensors.at(name)[i], values[i], 1e-4) << name;
    const auto resumed = run.resume({"run.epochs=2"});
    ASSERT_FALSE(resumed.failed) << resumed.error.message;
    EXPECT_GE(resumed.summary.test_accuracy, accuracy - 0.05);
  }
}

TEST(Strategies, StaleSynchronousWorkersStayWithinTheBound) {
  for (const int bound : {0, 2}) {
    SmallRun run(options_for("ssp", {"cluster.workers=3", "strategy.s=" + std::to_string(bound), "data.batch=10",
                                     "cluster.synthetic_step_ms=1", "cluster.slowdown=[1, 1, 3]"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    std::map<strategies::WorkerId, strategies::Step> clocks{{0, 0}, {1, 0}, {2, 0}};
    strategies::Step furthest = 0;
    const auto seen = requests(run);
    for (const auto& request : seen.at(0)) {
      if (request.kind != Transfer::push) continue;
      clocks[request.worker] = request.clock;
      auto slowest = std::numeric_limits<strategies::Step>::max();
      for (const auto& [worker, clock] : clocks) slowest = std::min(slowest, clock);
      // A worker's step begins at most `bound` ahead, so its clock ends at most one more ahead.
      furthest = std::max(furthest, request.clock - slowest);
    }
    EXPECT_LE(furthest, static_cast<strategies::Step>(bound) + 1);
    EXPECT_GE(furthest, static_cast<strategies::Step>(bound)) << "nobody ran ahead: this tests nothing";
    EXPECT_GT(end.summary.per_worker[0].waits[2], 0) << "nobody waited for the slow worker";
    EXPECT_EQ(end.summary.per_worker[2].steps, end.summary.per_worker[0].steps);
  }
}

TEST(Strategies, ASlowWorkerTakesFewerLeasesOnDemand) {
  for (const std::string strategy : {"easgd", "downpour"}) {
    // Long steps: a worker may begin a second or two late.
    SmallRun run(options_for(strategy, {"cluster.workers=3", "data.batch=10", "cluster.synthetic_step_ms=10",
                                        "cluster.slowdown=[1, 1, 8]", "data.prefetch=1"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto& workers = end.summary.per_worker;
    EXPECT_EQ(end.summary.steps, 360U);
    EXPECT_LT(workers[2].steps, workers[0].steps) << strategy;
    EXPECT_LT(workers[2].steps, workers[1].steps) << strategy;
  }
}

TEST(Strategies, UnequalBatchesShareAnEpoch) {
  SmallRun run(options_for("easgd", {"data.batch=[30, 10]", "run.epochs=2"}));
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto& workers = end.summary.per_worker;
  EXPECT_EQ(workers[0].samples, 30 * workers[0].steps);
  EXPECT_EQ(workers[1].samples, 10 * workers[1].steps);
  EXPECT_GE(workers[0].samples + workers[1].samples, 2400U);
}

TEST(Strategies, ASyntheticStepTimeChangesNoNumber) {
  SmallRun plain({"cluster.workers=2"});
  SmallRun slow({"cluster.workers=2", "cluster.slowdown=[1, 2]", "cluster.synthetic_step_ms=0.5"});
  EXPECT_EQ(plain.train().summary.center_hash, slow.train().summary.center_hash);
}

}  // namespace
}  // namespace troupe::tests
