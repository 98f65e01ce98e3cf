// `--set`: the recorded schedule under other settings, and changes that the replay refuses.
#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;

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

TEST(OtherNumbers, DivergenceIsReportedAsInTraining) {
  for (const auto* strategy :
       {"bsp", "easgd", "gossip"}) {  // a downpour server refuses such pushes, so the schedule differs
    SCOPED_TRACE(strategy);
    SmallRun run(options_of(strategy, {}));
    ASSERT_FALSE(run.train().failed);
    const auto report = replayed(run, {"train.lr=1e30", "train.weight_decay=1e30"});
    ASSERT_FALSE(report) << report->summary.test_loss;
    EXPECT_EQ(report.error().code, core::Errc::diverged);
    EXPECT_NE(report.error().message.find("diverged: "), std::string::npos) << report.error().message;
    EXPECT_EQ(report.error().message.find("as it was recorded"), std::string::npos) << report.error().message;
  }
}

/// The recording is intact: the key is wrong, and the message names this key and no other.
void expect_refused(const SmallRun& run, const std::string& harmless, const std::string& guilty) {
  const auto report = replayed(run, {harmless, guilty});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::config) << report.error().message;
  EXPECT_NE(report.error().message.find("--set " + guilty + ": "), std::string::npos) << report.error().message;
}

TEST(OtherNumbers, NeedForOtherServersNamesTheKey) {
  SmallRun run(options_of("bsp", {"strategy.backup=1"}));
  ASSERT_FALSE(run.train().failed);
  expect_refused(run, "train.momentum=0.5", "strategy.backup=0");
}

TEST(OtherNumbers, NeedForUnrecordedVectorsNamesTheKey) {
  const Options bounded{"run.journal=30 KB", "run.epochs=6", "model.widths=[4]"};
  const auto gossip = train_bounded(options_of("gossip", bounded));
  ASSERT_FALSE(gossip.end.failed) << gossip.end.error.message;
  expect_refused(*gossip.run, "train.momentum=0.5", "train.optimizer=adam");
  const auto fewer = replayed(*gossip.run, {"train.optimizer=sgd"});
  EXPECT_TRUE(fewer) << fewer.error().message;

  auto mixed = bounded;
  mixed.emplace_back("strategy.server_optimizer=momentum");
  const auto average = train_bounded(options_of("mixed", mixed));
  ASSERT_FALSE(average.end.failed) << average.end.error.message;
  expect_refused(*average.run, "train.lr=0.001", "strategy.ema=0.9");
}

/// The state of a rule is text that only the same rule understands.
TEST(OtherNumbers, NumbersThatDoNotFitTheSavedStateAreRefused) {
  const auto bounded = train_bounded(
      options_of("mixed", {"run.journal=30 KB", "run.epochs=6", "model.widths=[4]", "strategy.inner=easgd"}));
  ASSERT_FALSE(bounded.end.failed) << bounded.end.error.message;
  const auto report = replayed(*bounded.run, {"strategy.inner=ssp"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::config) << report.error().message;
  EXPECT_NE(report.error().message.find("--set strategy.inner=ssp"), std::string::npos) << report.error().message;
}

/// Keys that would change which exchange comes when are refused before any data is opened, whatever the recording's strategy.
TEST(OtherNumbers, OptionsOfTheScheduleAreRefusedByName) {
  struct Case {
    std::string strategy;
    std::vector<std::string> refused;
    std::string may;  // what the message offers instead
  };
  for (const auto& [strategy, refused, may] :
       {Case{"easgd", {"strategy.tau=8", "strategy.overlap=skip"}, "strategy.alpha"},
        Case{"ssp", {"strategy.s=1", "strategy.steps_per_clock=2"}, "train.* only"},
        Case{"downpour", {"strategy.n_push=2"}, "strategy.staleness_aware"},
        Case{
            "bsp", {"strategy.combine=weights", "cluster.workers=2", "run.seed=9", "data.batch=10"}, "train.* only"}}) {
    SCOPED_TRACE(strategy);
    SmallRun run(options_of(strategy, {}));
    ASSERT_FALSE(run.train().failed);
    for (const auto& change : refused) {
      expect_refused(run, "train.momentum=0.5", change);
      const auto message = replayed(run, {change}).error().message;
      EXPECT_NE(message.find("a replay keeps the recorded schedule"), std::string::npos) << message;
      EXPECT_NE(message.find(may), std::string::npos) << message;
    }
    EXPECT_TRUE(replayed(run, {"cluster.workers=3", "train.lr=0.001"})) << "the recorded value changes nothing";
    EXPECT_TRUE(replayed(run, {" train.lr = 0.001"})) << "spaces around a key are no part of it";
  }
}

/// What the help offers can be changed, with every strategy.
TEST(OtherNumbers, EveryOptionThatAStrategyOffersKeepsTheSchedule) {
  for (const auto& row : strategies::registry()) {
    if (row.replayable_options.empty()) continue;
    SmallRun run(options_of(row.name, {"data.train_samples=300"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    for (const auto& name : row.replayable_options) {
      // A value other than the default, by the option's kind.
      const auto* const option = experiment::schema().find("strategy." + name, row.name);
      ASSERT_TRUE(option) << row.name << " has no option " << name;
      std::string value = "0.25";
      if (std::holds_alternative<bool>(option->default_value)) value = "true";
      if (std::holds_alternative<std::vector<double>>(option->default_value)) value = "[0.25]";
      if (name == "outer") value = row.name == "diloco" ? "sgd" : "nesterov";
      if (name == "server_optimizer") value = "adagrad";
      if (name == "placement") value = "dedicated";
      const auto report = replayed(run, {"strategy." + name + "=" + value});
      ASSERT_TRUE(report) << row.name << ", " << name << ": " << report.error().message;
      EXPECT_EQ(report->segments.front().replayed, report->segments.front().events) << row.name << ", " << name;
    }
  }
}

}  // namespace
}  // namespace troupe::tests
