// Runs whose members do not share memory: every vector goes through an endpoint. Results that do not depend on the order of messages
// have the same bits as in one site.
#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;

Options options_of(const std::string& strategy, const Options& more = {}) {
  Options options{"strategy.name=" + strategy, "cluster.workers=3", "cluster.servers=2", "train.lr=0.03"};
  if (strategy == "eamsgd") options.emplace_back("train.optimizer=nesterov");
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

experiment::RunEnd trained(const Options& options) {
  SmallRun run(options);
  return run.train();
}

TEST(Sites, SumsAreTheSameBitsAsInPlace) {
  for (const std::string strategy : {"bsp", "local_sgd", "sync_easgd", "pairs"}) {
    SCOPED_TRACE(strategy);
    const auto in_place = trained(options_of(strategy));
    ASSERT_FALSE(in_place.failed) << in_place.error.message;
    const auto apart = trained(options_of(strategy, {"exchange.endpoint=inproc"}));
    ASSERT_FALSE(apart.failed) << apart.error.message;
    EXPECT_EQ(apart.summary.center_hash, in_place.summary.center_hash);
    EXPECT_EQ(apart.summary.test_accuracy, in_place.summary.test_accuracy);
    EXPECT_EQ(apart.summary.exchange_count, in_place.summary.exchange_count);
    EXPECT_EQ(apart.summary.exchange_bytes, in_place.summary.exchange_bytes);
  }
}

/// Sites map each other's arenas, over both endpoints that can do so: with 1, 2 and 4 workers.
TEST(Sites, SumsInMappedMemoryAreTheSameBits) {
  for (const std::string workers : {"1", "2", "4"}) {
    for (const std::string strategy : {"bsp", "pairs", "mixed"}) {
      if (workers == "1" && strategy != "bsp") continue;
      const Options more{"cluster.workers=" + workers, "exchange.algorithm=shm"};
      const auto in_place = trained(options_of(strategy, more));
      ASSERT_FALSE(in_place.failed) << in_place.error.message;
      for (const std::string endpoint : {"inproc", "shm"}) {
        SCOPED_TRACE(testing::Message() << strategy << " of " << workers << " over " << endpoint);
        auto options = options_of(strategy, more);
        options.push_back("exchange.endpoint=" + endpoint);
        const auto mapped = trained(options);
        ASSERT_FALSE(mapped.failed) << mapped.error.message;
        // The sum at the servers of mixed depends on the order in which the workers' pushes arrive.
        const bool same = strategy != "mixed";
        EXPECT_TRUE(!same || mapped.summary.center_hash == in_place.summary.center_hash);
        EXPECT_EQ(mapped.summary.exchange_count, in_place.summary.exchange_count);
      }
    }
  }
}

TEST(Sites, EveryStrategyLearns) {
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    SmallRun run(options_of(row.name, {"exchange.endpoint=inproc", "run.epochs=5", "run.checkpoint_every=1 epoch"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_GT(end.summary.test_accuracy, 0.3);  // chance is 0.1
    EXPECT_GT(end.summary.exchange_count, 0U);
    const auto longer = run.resume({"run.epochs=6"});
    EXPECT_FALSE(longer.failed) << longer.error.message;
  }
}

TEST(Sites, WaitsAreAttributedToTheWorkersThatCausedThem) {
  const auto end = trained(options_of("bsp", {"exchange.endpoint=inproc", "data.batch=10",
                                              "cluster.synthetic_step_ms=1", "cluster.slowdown=[1, 1, 4]"}));
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto& workers = end.summary.per_worker;
  for (const int w : {0, 1}) EXPECT_GT(workers[w].waits[2], 0) << w;
}

/// A server ends a round when the last worker's push arrives: the others waited for that worker, not for the server.
TEST(Sites, HeldRequestsAreAttributedToTheWorkersTheyWaitedFor) {
  auto options = options_of("sync_easgd", {"exchange.endpoint=inproc", "data.batch=10", "strategy.tau=1",
                                           "cluster.synthetic_step_ms=1", "cluster.slowdown=[1, 1, 8]"});
  const auto end = trained(options);
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto& workers = end.summary.per_worker;
  for (const int w : {0, 1}) EXPECT_GT(workers[w].waits[2], 0) << w;
}

TEST(Sites, WaitingInAServersQueueIsAttributed) {
  const auto end = trained(options_of("easgd", {"exchange.endpoint=inproc", "strategy.tau=1"}));
  ASSERT_FALSE(end.failed) << end.error.message;
  for (const auto& worker : end.summary.per_worker) EXPECT_GT(worker.waits[3] + worker.waits[4], 0) << worker.worker;
}

TEST(Sites, BytesAreThoseOnTheWire) {
  const auto bytes = [](Options options) {
    options.insert(options.end(), {"exchange.endpoint=inproc", "cluster.server_placement=dedicated", "run.epochs=1"});
    const auto end = trained(options_of(options[0].substr(options[0].find('=') + 1), options));
    EXPECT_FALSE(end.failed) << end.error.message;
    return static_cast<double>(end.summary.exchange_bytes) / static_cast<double>(end.summary.exchange_count);
  };
  EXPECT_EQ(bytes({"strategy.name=downpour", "exchange.wire=bf16"}), bytes({"strategy.name=downpour"}) / 2);
  // Masters are not rounded: of an elastic exchange only the answer is, of pairs' and gossip's vectors none.
  for (const auto* overlap : {"strategy.overlap=off", "strategy.overlap=wait"})
    EXPECT_EQ(bytes({"strategy.name=easgd", overlap, "exchange.wire=bf16"}),
              bytes({"strategy.name=easgd", overlap}) * 3 / 4);
  EXPECT_EQ(bytes({"strategy.name=sync_easgd", "exchange.wire=bf16"}), bytes({"strategy.name=sync_easgd"}) * 3 / 4);
  for (const auto* strategy : {"strategy.name=pairs", "strategy.name=gossip"})
    EXPECT_EQ(bytes({strategy, "exchange.wire=bf16"}), bytes({strategy}));
  EXPECT_EQ(bytes({"strategy.name=bsp", "strategy.combine=weights", "exchange.wire=bf16"}),
            bytes({"strategy.name=bsp", "strategy.combine=weights"}) / 2);
  EXPECT_EQ(bytes({"strategy.name=bsp", "exchange.algorithm=ring"}), bytes({"strategy.name=bsp"}));
  EXPECT_EQ(bytes({"strategy.name=bsp", "exchange.algorithm=asa16"}), bytes({"strategy.name=bsp"}) / 2);
}

TEST(Sites, RingsAnd16BitWiresLearnToo) {
  for (const Options& more : std::vector<Options>{{"exchange.algorithm=ring"},
                                                  {"exchange.algorithm=asa16"},
                                                  {"exchange.wire=bf16"},
                                                  {"strategy.name=easgd", "exchange.wire=bf16"},
                                                  {"strategy.name=downpour", "exchange.wire=fp16"},
                                                  {"strategy.name=gossip", "exchange.wire=bf16"}}) {
    SCOPED_TRACE(::testing::PrintToString(more));
    Options options = options_of("bsp", {"exchange.endpoint=inproc", "run.epochs=5"});
    options.insert(options.end(), more.begin(), more.end());
    const auto end = trained(options);
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_GT(end.summary.test_accuracy, 0.3);
  }
}

/// A pull sees the push before it, even where the push's vector takes longer to arrive than the pull. The explorer and replay rely on
/// that, and with one worker it decides every bit.
TEST(Sites, OneWorkersExchangesTakeEffectInTheirOrder) {
  for (const Options& more : std::vector<Options>{{"strategy.name=downpour"},
                                                  {"strategy.name=downpour", "strategy.n_push=2"},
                                                  {"strategy.name=ssp", "strategy.s=1", "strategy.overlap=wait"}}) {
    Options options{"cluster.workers=1", "cluster.servers=2", "model.widths=[2000]", "data.train_samples=400"};
    options.insert(options.end(), more.begin(), more.end());
    const auto in_place = trained(options);
    ASSERT_FALSE(in_place.failed) << in_place.error.message;
    options.emplace_back("cluster.server_placement=dedicated");
    for (const std::string endpoint : {"inproc", "shm", "tcp"}) {
      SCOPED_TRACE(::testing::PrintToString(more) + " over " + endpoint);
      auto apart = options;
      apart.push_back("exchange.endpoint=" + endpoint);
      const auto end = trained(apart);
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_EQ(end.summary.staleness_mean, in_place.summary.staleness_mean);
      EXPECT_EQ(end.summary.center_hash, in_place.summary.center_hash);
    }
  }
}

}  // namespace
}  // namespace troupe::tests
