// `--set`: the recorded schedule under other settings, and what cannot follow it.
#include <gtest/gtest.h>

#include "replay/replay_run.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;

core::Result<replay::ReplayReport> replayed(const SmallRun& run, const Options& changes) {
  return replay::replay_run({run.run_directory().string(), changes}, backend());
}

Options options_of(const std::string& strategy, const Options& more) {
  Options options{"strategy.name=" + strategy,    "cluster.workers=3", "cluster.servers=2", "data.train_samples=600",
                  "run.checkpoint_every=3 steps", "train.lr=0.003"};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

TEST(OtherNumbers, MayHaveFewerVectorsThanTheRecordingHasSnapshotsOf) {
  struct Case {
    std::string strategy;
    Options recorded;
    std::string change;
  };
  for (const auto& [strategy, recorded, change] :
       {Case{"diloco", {"strategy.tau=3"}, "strategy.outer=sgd"},
        Case{"downpour", {"strategy.server_optimizer=adam"}, "strategy.server_optimizer=none"},
        Case{"mixed", {"strategy.ema=0.9"}, "strategy.ema=0"},
        Case{"bsp", {"strategy.backup=1"}, "train.optimizer=sgd"}, Case{"bsp", {}, "train.optimizer=sgd"}}) {
    SCOPED_TRACE(testing::Message() << strategy << " " << change);
    SmallRun run(options_of(strategy, recorded));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto report = replayed(run, {change});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->segments.front().replayed, report->segments.front().events);
    EXPECT_EQ(report->summary.steps, end.summary.steps);
  }
}

TEST(OtherNumbers, ThatDivergeAreDivergedAsInTraining) {
  for (const auto* strategy : {"bsp", "easgd", "downpour", "gossip"}) {
    SCOPED_TRACE(strategy);
    SmallRun run(options_of(strategy, {}));
    ASSERT_FALSE(run.train().failed);
    const auto report = replayed(run, {"train.lr=1e38"});
    ASSERT_FALSE(report) << report->summary.test_loss;
    EXPECT_EQ(report.error().code, core::Errc::diverged);
    EXPECT_NE(report.error().message.find("training diverged"), std::string::npos) << report.error().message;
    EXPECT_EQ(report.error().message.find("as it was recorded"), std::string::npos) << report.error().message;
  }
}

}  // namespace
}  // namespace troupe::tests
