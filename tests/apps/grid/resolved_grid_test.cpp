#include "apps/grid/resolved_grid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/grid/folder.hpp"

namespace troupe::grid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ResolvedGridTest : public testing::Test {
 protected:
  core::Result<ResolvedGrid> resolved(const std::string& text, const std::vector<std::string>& overrides = {},
                                      const Check& check = nullptr) const {
    auto file = parse("base = \"" + base_ + "\"\n" + text, "g.toml", experiment::schema());
    if (!file) return tl::unexpected(file.error());
    return resolve(std::move(*file), overrides, check);
  }
  static std::vector<std::string> names(const core::Result<ResolvedGrid>& grid) {
    std::vector<std::string> all;
    if (grid)
      for (const auto& run : grid->runs) all.push_back(run.name);
    else
      all.push_back(grid.error().message);
    return all;
  }

  Folder folder_;
  std::string base_ = folder_.write("base.toml", kSmallBase);
};

TEST_F(ResolvedGridTest, ResolvesAndNamesEveryRun) {
  const auto grid = resolved("seeds = [1, 2]\n[grid]\nstrategy.tau = [1, 4]\n");
  ASSERT_THAT(names(grid), ElementsAre("tau=1_seed=1", "tau=1_seed=2", "tau=4_seed=1", "tau=4_seed=2"));
  EXPECT_EQ(grid->directory, "runs/g");
  const auto& last = grid->runs.back().settings;
  EXPECT_EQ(last.run.seed, 2);
  EXPECT_EQ(last.run.name, "tau=4_seed=2");
  EXPECT_EQ(last.run.dir, "runs/g");
  EXPECT_EQ(std::get<std::int64_t>(last.config.value("strategy.tau")), 4);
}

TEST_F(ResolvedGridTest, OverridesHoldForEveryRunAndTakeAKeyOutOfTheGrid) {
  const auto grid =
      resolved("[grid]\nstrategy.tau = [1, 4]\nrun.epochs = [1, 2]\n", {"strategy.tau=7", "run.dir=elsewhere"});
  ASSERT_THAT(names(grid), ElementsAre("epochs=1", "epochs=2"));
  EXPECT_EQ(grid->directory, "elsewhere/g");
  for (const auto& run : grid->runs) EXPECT_EQ(std::get<std::int64_t>(run.settings.config.value("strategy.tau")), 7);
}

TEST_F(ResolvedGridTest, KeysThatAStrategyDoesNotReadMakeNoRuns) {
  const auto grid = resolved("[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\nstrategy.alpha = [0.2, 0.4]\n");
  EXPECT_THAT(names(grid), ElementsAre("bsp", "easgd_alpha=0.2", "easgd_alpha=0.4"));
  EXPECT_EQ(grid->merged, 1u);
}

TEST_F(ResolvedGridTest, AWrongValueNamesTheLineAndTheRun) {
  const auto grid = resolved("[grid]\ntrain.lr = [0.1]\nstrategy.tau = [4, 0]\n");
  ASSERT_FALSE(grid.has_value());
  EXPECT_EQ(grid.error().code, core::Errc::config);
  EXPECT_EQ(grid.error().message,
            "g.toml:4: strategy.tau = 0: must be between 1 and 1,000,000,000 (in the run with train.lr = 0.1, "
            "strategy.tau = 0)");
}

TEST_F(ResolvedGridTest, ValuesThatDoNotFitEachOtherAreFoundToo) {
  const auto grid = resolved("[grid]\ncluster.workers = [2, 3]\ndata.batch = [[64, 16]]\n");
  ASSERT_FALSE(grid.has_value());
  EXPECT_THAT(grid.error().message, HasSubstr("g.toml:4: data.batch has 2 values for 3 workers"));
  EXPECT_THAT(grid.error().message, HasSubstr("(in the run with cluster.workers = 3, data.batch = [64, 16])"));
}

TEST_F(ResolvedGridTest, ConfigurationRefusedByTheCheckNamesTheRun) {
  const auto grid =
      resolved("[grid]\nrun.epochs = [1, 2]\n", {}, [](const experiment::Settings& s) -> core::Result<void> {
        if (s.run.epochs == 1) return {};
        return core::fail(core::Errc::config, "two are too many");
      });
  ASSERT_FALSE(grid.has_value());
  EXPECT_EQ(grid.error().message, "two are too many (in the run with run.epochs = 2)");
}

TEST_F(ResolvedGridTest, ExcludingEveryRunIsAnError) {
  EXPECT_FALSE(resolved("[grid]\nrun.epochs = [1]\n[[exclude]]\nrun.epochs = 1\n").has_value());
}

TEST_F(ResolvedGridTest, IdentityIsTheSettingsWithoutNameAndPlace) {
  const auto one = resolved("[grid]\nrun.epochs = [3, 2]\n"), two = resolved("", {"run.epochs=3", "run.dir=x"});
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->runs[0].identity, two->runs[0].identity);
  EXPECT_NE(one->runs[1].identity, two->runs[0].identity);
  const auto saved = folder_.write("saved.toml", one->runs[0].settings.config.to_toml());
  EXPECT_EQ(identity_of(saved).value(), two->runs[0].identity);
}

}  // namespace
}  // namespace troupe::grid
