// Runs in one process with every vector in device memory: training, exchanges, checkpoints, evaluation, resuming and replays.
#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/gpu/arenas/device_runs.hpp"

namespace troupe::tests {
namespace {

constexpr const char* kConvolutions =
    R"(model.layers=[{type="conv2d", outputs=4, kernel=5, stride=3}, {type="batch_norm"}, {type="relu"},)"
    R"( {type="flatten"}, {type="linear", outputs=10}])";

TEST(DeviceArenas, EveryStrategyReplaysWithTheSameHashes) {
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    expect_replays(run_options_of(row.name));
  }
}

TEST(DeviceArenas, OptionsThatTouchVectorsReplayWithTheSameHashes) {
  const std::vector<std::pair<std::string, RunOptions>> variants{
      {"bsp", {"strategy.combine=weights", "strategy.average_momentum=true", "cluster.workers=3"}},
      {"bsp", {"train.accumulate=4", "train.clip_norm=0.5"}},
      {"bsp", {"train.ema=0.9"}},
      {"easgd", {"strategy.tau=1", "strategy.overlap=skip", "train.ema=0.9"}},
      {"easgd", {"train.optimizer=adam", "train.lr=0.003"}},
      {"downpour", {"strategy.server_optimizer=adam", "train.lr=0.003", "strategy.staleness_aware=true"}},
      {"diloco", {"strategy.tau=4", "strategy.fragments=2", "strategy.delay=1"}},
      {"mixed", {"strategy.group_size=2", "strategy.ema=0.9", "cluster.workers=4"}},
      {"gossip", {"strategy.p=0.8", "cluster.workers=3", "train.ema=0.9"}},
      {"easgd",
       {"data.validation=\"0.25\"", "train.lr_policy=plateau", "train.lr_patience=1", "run.evaluate_every=\"7 steps\"",
        "run.evaluation=beside"}},
      {"bsp", {"model.name=own", kConvolutions}},
      {"gossip", {"model.name=own", kConvolutions}},
  };
  for (const auto& [strategy, more] : variants) {
    SCOPED_TRACE(testing::Message() << strategy << " " << testing::PrintToString(more));
    expect_replays(run_options_of(strategy, more));
  }
}

/// What does not depend on who was faster.
std::vector<std::pair<std::string, RunOptions>> reproducible_runs() {
  return {{"bsp", {"model.name=own", kConvolutions}},
          {"bsp", {"train.accumulate=4"}},
          {"local_sgd", {"strategy.tau=4"}},
          {"diloco", {"strategy.tau=4", "strategy.fragments=2"}},
          {"easgd", {"strategy.tau=2", "cluster.workers=1"}},
          {"downpour", {"cluster.workers=1"}}};
}

TEST(DeviceArenas, TrainTheBitsOfMirrors) {
  for (const auto& [strategy, more] : reproducible_runs()) {
    SCOPED_TRACE(testing::Message() << strategy << " " << testing::PrintToString(more));
    SmallRun with_mirrors(run_options_of(strategy, more), mirrored());
    SmallRun on_device(run_options_of(strategy, more), resident());
    const auto expected = with_mirrors.train();
    const auto end = on_device.train();
    ASSERT_FALSE(expected.failed) << expected.error.message;
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(end.summary.test_loss, expected.summary.test_loss);
    EXPECT_EQ(on_device.tensors(), with_mirrors.tensors());
  }
}

// A vector that another thread uses before the device has written it gives other bits under some order of the device's work.
TEST(DeviceArenas, EveryOrderOfTheDevicesWorkGivesTheSameBits) {
  for (const auto& [strategy, more] : reproducible_runs()) {
    SCOPED_TRACE(testing::Message() << strategy << " " << testing::PrintToString(more));
    SmallRun plain(run_options_of(strategy, more), resident());
    const auto expected = plain.train();
    ASSERT_FALSE(expected.failed) << expected.error.message;
    for (const std::uint64_t seed : {1U, 2U}) {
      const auto scheduled = resident_backend(seed);
      SmallRun run(run_options_of(strategy, more), *scheduled);
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_EQ(run.tensors(), plain.tensors()) << "seed " << seed;
    }
  }
  for (const char* strategy : {"easgd", "gossip", "ssp"}) {
    SCOPED_TRACE(strategy);
    const auto scheduled = resident_backend(3);
    expect_replays(run_options_of(strategy), *scheduled);
  }
}

TEST(DeviceArenas, ResumedBspReachesTheBitsOfTheUninterruptedRun) {
  SmallRun whole(run_options_of("bsp", {"run.epochs=2"}), resident());
  SmallRun parts(run_options_of("bsp", {"run.epochs=1"}), resident());
  ASSERT_FALSE(whole.train().failed);
  ASSERT_FALSE(parts.train().failed);
  const auto end = parts.resume({"run.epochs=2"});
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(parts.tensors(), whole.tensors());
}

TEST(DeviceArenas, ResumedRunsHaveTheBitsOfMirrorsAndReplay) {
  for (const char* strategy : {"bsp", "local_sgd"}) {
    SCOPED_TRACE(strategy);
    const auto options = run_options_of(strategy, {"model.name=own", kConvolutions});
    SmallRun with_mirrors(options, mirrored());
    SmallRun on_device(options, resident());
    for (SmallRun* run : {&with_mirrors, &on_device}) {
      ASSERT_FALSE(run->train().failed);
      ASSERT_FALSE(run->resume({"run.epochs=2"}).failed);
    }
    EXPECT_EQ(on_device.tensors(), with_mirrors.tensors());
    const auto report = replay::replay_run({on_device.run_directory().string(), {}}, resident());
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->segments.size(), 2U);
    EXPECT_GT(report->segments[1].hashes, 0U);
  }
}

// Segments that begin in the middle of the run: members' states, with unread peer messages, go to the device.
TEST(DeviceArenas, ReplayBeginsInTheMiddleOfARun) {
  for (const auto& [strategy, more] : std::vector<std::pair<std::string, RunOptions>>{
           {"gossip", {"strategy.p=0.9", "cluster.slowdown=[1, 3]"}}, {"easgd", {"strategy.tau=1"}}}) {
    SCOPED_TRACE(strategy);
    auto options = run_options_of(strategy, more);
    options.insert(options.end(),
                   {"run.journal=40 KB", "run.epochs=5", "model.widths=[4]", "run.checkpoint_every=1 epoch"});
    bool in_the_middle = false;
    // A segment begins only once its start state is on disk. Longer steps give a slow disk the time.
    for (const char* step_ms : {"2", "8", "32"}) {
      auto lasting = options;
      lasting.push_back(std::string("cluster.synthetic_step_ms=") + step_ms);
      SmallRun run(lasting, resident());
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto report = replay::replay_run({run.run_directory().string(), {}}, resident());
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_GT(report->hashes(), 0U);
      EXPECT_EQ(report->summary.center_hash, end.summary.center_hash);
      in_the_middle = report->missing + report->segments.size() > 1;
      if (in_the_middle) break;
    }
    EXPECT_TRUE(in_the_middle);
  }
}

// Endpoints move host memory: between sites workers lend copies.
TEST(DeviceArenas, RunsOverSeveralSitesHaveTheBitsOfMirrors) {
  for (const char* strategy : {"bsp", "local_sgd", "diloco"}) {
    SCOPED_TRACE(strategy);
    const RunOptions more{"exchange.endpoint=inproc", "model.name=own", kConvolutions};
    SmallRun on_device(run_options_of(strategy, more), resident());
    SmallRun with_mirrors(run_options_of(strategy, more), mirrored());
    const auto end = on_device.train_on_hosts({0, 0, 1});
    const auto expected = with_mirrors.train_on_hosts({0, 0, 1});
    ASSERT_FALSE(end.failed) << end.error.message;
    ASSERT_FALSE(expected.failed) << expected.error.message;
    EXPECT_EQ(on_device.tensors(), with_mirrors.tensors());
    const auto report = replay::replay_run({on_device.run_directory().string(), {}}, resident());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->summary.center_hash, end.summary.center_hash);
  }
}

TEST(DeviceArenas, RunsOverSeveralSitesReplayWithTheSameHashes) {
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    for (const RunOptions& more : std::vector<RunOptions>{{}, {"cluster.workers=3", "train.ema=0.9"}}) {
      auto options = run_options_of(row.name, more);
      options.emplace_back("exchange.endpoint=inproc");
      SmallRun run(options, resident());
      const auto end = run.train_on_hosts(more.empty() ? std::vector<std::uint32_t>{0, 0, 1}
                                                       : std::vector<std::uint32_t>{0, 0, 0, 1});
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto report = replay::replay_run({run.run_directory().string(), {}}, resident());
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_GT(report->hashes(), 0U);
      EXPECT_EQ(report->summary.center_hash, end.summary.center_hash);
    }
  }
}

}  // namespace
}  // namespace troupe::tests
