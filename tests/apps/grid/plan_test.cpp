#include "apps/grid/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/grid/folder.hpp"

namespace troupe::grid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanTest : public testing::Test {
 protected:
  core::Result<GridPlan> planned(const std::string& text, const std::vector<std::string>& overrides = {},
                                 const Check& check = nullptr) const {
    auto file = parse("base = \"" + base_ + "\"\n" + text, "g.toml", experiment::schema());
    if (!file) return tl::unexpected(file.error());
    return plan(std::move(*file), overrides, check);
  }
  static std::vector<std::string> names(const core::Result<GridPlan>& plan) {
    std::vector<std::string> all;
    if (plan)
      for (const auto& run : plan->runs) all.push_back(run.name);
    else
      all.push_back(plan.error().message);
    return all;
  }

  Folder folder_;
  std::string base_ = folder_.write("base.toml", kSmallBase);
};

TEST_F(PlanTest, ResolvesAndNamesEveryRun) {
  const auto plan = planned("seeds = [1, 2]\n[grid]\nstrategy.tau = [1, 4]\n");
  ASSERT_THAT(names(plan), ElementsAre("tau=1_seed=1", "tau=1_seed=2", "tau=4_seed=1", "tau=4_seed=2"));
  EXPECT_EQ(plan->directory, "runs/g");
  const auto& last = plan->runs.back().settings;
  EXPECT_EQ(last.run.seed, 2);
  EXPECT_EQ(last.run.name, "tau=4_seed=2");
  EXPECT_EQ(last.run.dir, "runs/g");
  EXPECT_EQ(std::get<std::int64_t>(last.config.value("strategy.tau")), 4);
}

TEST_F(PlanTest, OverridesHoldForEveryRunAndTakeAKeyOutOfTheGrid) {
  const auto plan =
      planned("[grid]\nstrategy.tau = [1, 4]\nrun.epochs = [1, 2]\n", {"strategy.tau=7", "run.dir=elsewhere"});
  ASSERT_THAT(names(plan), ElementsAre("epochs=1", "epochs=2"));
  EXPECT_EQ(plan->directory, "elsewhere/g");
  for (const auto& run : plan->runs) EXPECT_EQ(std::get<std::int64_t>(run.settings.config.value("strategy.tau")), 7);
}

TEST_F(PlanTest, KeysThatAStrategyDoesNotReadMakeNoRuns) {
  const auto plan = planned("[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\nstrategy.alpha = [0.2, 0.4]\n");
  EXPECT_THAT(names(plan), ElementsAre("bsp", "easgd_alpha=0.2", "easgd_alpha=0.4"));
  EXPECT_EQ(plan->merged, 1u);
}

TEST_F(PlanTest, AWrongValueNamesTheLineAndTheRun) {
  const auto plan = planned("[grid]\ntrain.lr = [0.1]\nstrategy.tau = [4, 0]\n");
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, core::Errc::config);
  EXPECT_EQ(plan.error().message,
            "g.toml:4: strategy.tau = 0: must be between 1 and 1000000000 (in the run with train.lr = 0.1, "
            "strategy.tau = 0)");
}

TEST_F(PlanTest, ValuesThatDoNotFitEachOtherAreFoundToo) {
  const auto plan = planned("[grid]\ncluster.workers = [2, 3]\ndata.batch = [[64, 16]]\n");
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(plan.error().message, HasSubstr("g.toml:4: data.batch has 2 values for 3 workers"));
  EXPECT_THAT(plan.error().message, HasSubstr("(in the run with cluster.workers = 3, data.batch = [64, 16])"));
}

TEST_F(PlanTest, ConfigurationRefusedByTheCheckNamesTheRun) {
  const auto plan =
      planned("[grid]\nrun.epochs = [1, 2]\n", {}, [](const experiment::Settings& s) -> core::Result<void> {
        if (s.run.epochs == 1) return {};
        return core::fail(core::Errc::config, "two are too many");
      });
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().message, "two are too many (in the run with run.epochs = 2)");
}

TEST_F(PlanTest, ExcludingEveryRunIsAnError) {
  EXPECT_FALSE(planned("[grid]\nrun.epochs = [1]\n[[exclude]]\nrun.epochs = 1\n").has_value());
}

TEST_F(PlanTest, IdentityIsTheSettingsWithoutNameAndPlace) {
  const auto one = planned("[grid]\nrun.epochs = [3, 2]\n"), two = planned("", {"run.epochs=3", "run.dir=x"});
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->runs[0].identity, two->runs[0].identity);
  EXPECT_NE(one->runs[1].identity, two->runs[0].identity);
  const auto saved = folder_.write("saved.toml", one->runs[0].settings.config.to_toml());
  EXPECT_EQ(identity_of(saved).value(), two->runs[0].identity);
}

}  // namespace
}  // namespace troupe::grid
