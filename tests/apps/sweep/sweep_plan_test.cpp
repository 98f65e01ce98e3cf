#include "apps/sweep/sweep_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kSweepBase =
    "[run]\nepochs = 9\n[model]\nname = \"mlp\"\nwidths = [8]\n[data]\nname = \"glyphs\"\n[strategy]\nname = "
    "\"easgd\"\n";

class SweepPlanTest : public testing::Test {
 protected:
  core::Result<SweepPlan> plan(const std::string& text, std::vector<std::string> overrides = {}) const {
    const auto base = folder_.write("base.toml", kSweepBase);
    auto file = grid::parse("base = \"" + base + "\"\n" + text, "s.toml", experiment::schema());
    if (!file) return tl::unexpected(file.error());
    return plan_sweep(std::move(*file), overrides, nullptr);
  }
  std::string error(const std::string& text, std::vector<std::string> overrides = {}) const {
    const auto planned = plan(text, std::move(overrides));
    if (planned) return "no error";
    EXPECT_EQ(planned.error().code, core::Errc::config);
    return planned.error().message;
  }

  tests::Folder folder_;
};

TEST_F(SweepPlanTest, ParametersFollowFromKeysAndTheirTypes) {
  const auto planned = plan(
      "[sweep]\nruns = 3\n[grid]\nstrategy.tau = { log = [1, 64] }\ntrain.lr = { log = [0.01, 1] }\n"
      "data.batch = [16, 32]\ntrain.momentum = 0.9\n");
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->space.size(), 3U);
  EXPECT_EQ(planned->space[0].kind, sweep::Kind::integer);
  EXPECT_EQ(planned->space[1].kind, sweep::Kind::real);
  EXPECT_EQ(planned->space[2].kind, sweep::Kind::choice);
  EXPECT_THAT(planned->keys(), ElementsAre("strategy.tau", "train.lr", "data.batch"));
  EXPECT_THAT(planned->options.rungs, ElementsAre(1, 3, 9));
  EXPECT_EQ(planned->metric, "test.accuracy");
  EXPECT_TRUE(planned->options.higher_is_better);
  EXPECT_EQ(planned->directory, "runs/s");
  const auto run = planned->run(7, {4.0, 0.05, 1.0});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->name, "007_tau=4_lr=0.05_batch=32");
  EXPECT_EQ(run->settings.train.lr, 0.05);
  EXPECT_EQ(run->settings.train.momentum, 0.9);
  EXPECT_THAT(run->settings.data.batch, ElementsAre(32));
}

TEST_F(SweepPlanTest, KeysOfOneStrategyExistWithItOnly) {
  const auto planned = plan(
      "[sweep]\nruns = 3\n[grid]\nstrategy.name = [\"bsp\", \"easgd\", \"downpour\"]\ntrain.lr = { log = [0.01, 1] }\n"
      "strategy.tau = [1, 4]\n[only.bsp]\ntrain.lr = 0.5\n[only.easgd]\nstrategy.alpha = { linear = [0.1, 0.9] }\n");
  ASSERT_TRUE(planned) << planned.error().message;
  const auto& space = planned->space;
  ASSERT_EQ(space.size(), 4U);
  EXPECT_EQ(space[1].key, "strategy.tau");
  EXPECT_THAT(space[1].when, ElementsAre(1)) << "of these strategies easgd alone reads it";
  EXPECT_EQ(space[2].key, "train.lr");
  EXPECT_THAT(space[2].when, ElementsAre(1, 2)) << "bsp's lr is 0.5";
  EXPECT_THAT(space[3].when, ElementsAre(1));
  const auto bsp = planned->run(0, {0.0, std::nullopt, std::nullopt, std::nullopt});
  ASSERT_TRUE(bsp) << bsp.error().message;
  EXPECT_EQ(bsp->settings.train.lr, 0.5);
  EXPECT_EQ(bsp->name, "000_bsp_lr=0.5");
}

TEST_F(SweepPlanTest, RungsMetricAndGoalAreThoseOfTheFile) {
  const std::string grid = "[grid]\ntrain.lr = { log = [0.01, 1] }\n";
  EXPECT_THAT(plan("[sweep]\nruns = 3\nrungs = [2, 5]\n" + grid)->options.rungs, ElementsAre(2, 5, 9));
  EXPECT_THAT(plan("[sweep]\nruns = 3\nrungs = [2, 9]\n" + grid)->options.rungs, ElementsAre(2, 9));
  EXPECT_THAT(plan("[sweep]\nruns = 3\nschedule = \"none\"\n" + grid)->options.rungs, ElementsAre(9));
  EXPECT_THAT(plan("[sweep]\nruns = 3\neta = 2\n" + grid, {"run.epochs=4"})->options.rungs, ElementsAre(1, 2, 4));
  EXPECT_THAT(plan("[sweep]\nruns = 3\neta = 2\n" + grid + "run.epochs = 4\n")->options.rungs, ElementsAre(1, 2, 4));
  EXPECT_FALSE(plan("[sweep]\nruns = 3\nmetric = \"test.loss\"\n" + grid)->options.higher_is_better);
  EXPECT_EQ(plan("[sweep]\nruns = 3\n" + grid, {"data.validation=0.1"})->metric, "validation.accuracy")
      << "the test split must not choose the settings";
}

TEST_F(SweepPlanTest, ErrorsNameTheLineAndWhatToDo) {
  const std::string sweep = "[sweep]\nruns = 3\n", grid = "[grid]\ntrain.lr = { log = [0.01, 1] }\n";
  EXPECT_THAT(error(sweep), HasSubstr("s.toml:2: nothing varies"));
  EXPECT_THAT(error(sweep + "[grid]\ntrain.optimizer = { log = [1, 2] }\n"),
              HasSubstr("s.toml:5: train.optimizer is no number"));
  EXPECT_THAT(error(sweep + "[grid]\nstrategy.tau = { log = [1, 2.5] }\n"),
              HasSubstr("s.toml:5: strategy.tau is a whole number"));
  EXPECT_THAT(error(sweep + "[grid]\nstrategy.tau = { log = [1, 1e19] }\n"),
              HasSubstr("s.toml:5: strategy.tau: the ends of a range of whole numbers are at most 2^53"));
  EXPECT_THAT(error(sweep + "[grid]\nstrategy.tau = { linear = [0, 4] }\n"),
              HasSubstr("s.toml:5: strategy.tau = 0: must be"));
  EXPECT_THAT(error(sweep + "[grid]\nstrategy.alpha = { linear = [0.5, 1.5] }\n"),
              HasSubstr("s.toml:5: strategy.alpha = 1.5"));
  EXPECT_THAT(error(sweep + "[grid]\nrun.epochs = [3, 9]\n"),
              HasSubstr("run.epochs is the length of every run of a sweep"));
  EXPECT_THAT(error(sweep + grid + "run.max_epochs = 3\n"), HasSubstr("the sweep says how far its runs are trained"));
  EXPECT_THAT(error(sweep + grid, {"run.max_epochs=3"}), HasSubstr("the sweep says how far its runs are trained"));
  EXPECT_THAT(error(sweep + "metric = \"test.acuracy\"\n" + grid), HasSubstr("no summary has \"test.acuracy\""));
  EXPECT_THAT(error(sweep + "metric = \"validation.loss\"\n" + grid), HasSubstr("data.validation is \"none\""));
  EXPECT_THAT(error(sweep + "least = 10\n" + grid), HasSubstr("least = 10: runs have 9 epochs"));
  EXPECT_THAT(error(sweep + "epochs = 8\n" + grid),
              HasSubstr("s.toml:2: [sweep] epochs = 8, over all runs: one run has 9"));
  EXPECT_THAT(error(sweep + "rungs = [1, 12]\n" + grid), HasSubstr("rungs has 12: runs have 9 epochs"));
}

/// What may change between two starts of a sweep, and what may not.
TEST_F(SweepPlanTest, TheIdentityIsOfAllThatResultsDependOn) {
  const std::string grid = "[grid]\ntrain.lr = { log = [0.01, 1] }\n";
  const auto first = plan("[sweep]\nruns = 3\n" + grid)->identity;
  const auto is_first = [&](const std::string& text, std::vector<std::string> overrides = {}) {
    const auto identity = plan(text, std::move(overrides))->identity;
    const bool same = identity.fingerprint == first.fingerprint && identity.settings == first.settings;
    EXPECT_EQ(same, identity.whole == first.whole) << "what format 1 has";
    return same;
  };
  EXPECT_TRUE(is_first("[sweep]\nruns = 30\nepochs = 50\nhours = 2\nseed = 4\nmethod = \"random\"\n" + grid));
  EXPECT_FALSE(is_first("[sweep]\nruns = 3\n[grid]\ntrain.lr = { log = [0.01, 2] }\n"));
  EXPECT_FALSE(is_first("[sweep]\nruns = 3\nmetric = \"test.loss\"\n" + grid));
  EXPECT_FALSE(is_first("[sweep]\nruns = 3\neta = 2\n" + grid));
  EXPECT_FALSE(is_first("[sweep]\nruns = 3\n" + grid, {"data.batch=7"}));
  const auto with_bsp_at = [&](const std::string& momentum) {
    return plan("[sweep]\nruns = 3\n" + grid +
                "strategy.name = [\"bsp\", \"easgd\"]\n[only.bsp]\ntrain.momentum = " + momentum + "\n")
        ->identity.settings;
  };
  EXPECT_NE(with_bsp_at("0.5"), with_bsp_at("0.9")) << "of each strategy";
}

}  // namespace
}  // namespace troupe::apps
