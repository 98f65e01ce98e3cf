#include "apps/grid/grid_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/settings.hpp"

namespace troupe::grid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

core::Result<GridFile> parsed(const std::string& text) { return parse(text, "grids/a.toml", experiment::schema()); }

TEST(GridFileTest, ReadsEveryPartInTheOrderOfTheFile) {
  const auto file = parsed(
      "base = [\"a.toml\", \"b.toml\"]\nseeds = [3, 1]\n"
      "[grid]\ntrain.lr = [0.1, 1]\n\"strategy.name\" = [\"bsp\", \"easgd\"]\ncluster.workers = 4\n"
      "data.batch = [[64, 16], 32]\n"
      "[[zip]]\ntrain.momentum = [0, 0.9]\nrun.epochs = [1, 2]\n"
      "[only.easgd]\nstrategy.tau = [1, 4]\n"
      "[[exclude]]\nstrategy.name = \"easgd\"\ntrain.lr = [0.1]\n");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->name, "a");
  EXPECT_THAT(file->bases, ElementsAre("a.toml", "b.toml"));
  EXPECT_THAT(file->seeds, ElementsAre(3, 1));
  EXPECT_THAT(file->axes, ElementsAre(Axis{"train.lr", {"0.1", "1"}, "grids/a.toml:4"},
                                      Axis{"strategy.name", {"\"bsp\"", "\"easgd\""}, "grids/a.toml:5"},
                                      Axis{"cluster.workers", {"4"}, "grids/a.toml:6"},
                                      Axis{"data.batch", {"[64, 16]", "32"}, "grids/a.toml:7"}));
  ASSERT_EQ(file->zips.size(), 1u);
  EXPECT_THAT(file->zips[0], ElementsAre(Axis{"train.momentum", {"0", "0.9"}, "grids/a.toml:9"},
                                         Axis{"run.epochs", {"1", "2"}, "grids/a.toml:10"}));
  ASSERT_EQ(file->only.size(), 1u);
  EXPECT_EQ(file->only[0].strategy, "easgd");
  EXPECT_THAT(file->only[0].axes, ElementsAre(Axis{"strategy.tau", {"1", "4"}, "grids/a.toml:12"}));
  ASSERT_EQ(file->excludes.size(), 1u);
  EXPECT_EQ(file->excludes[0].keys.size(), 2u);
}

struct Wrong {
  std::string text, message;
  friend std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.message; }
};
class WrongGridTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongGridTest, NamesFileLineAndMistake) {
  const auto file = parsed(GetParam().text);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, core::Errc::config);
  EXPECT_THAT(file.error().message, HasSubstr(GetParam().message));
}

const std::string kBase = "base = \"a.toml\"\n";
INSTANTIATE_TEST_SUITE_P(
    All, WrongGridTest,
    testing::Values(Wrong{"[grid]\n", "grids/a.toml: missing key \"base\""},
                    Wrong{"base = 3\n", "a.toml:1: base must be the path"},
                    Wrong{kBase + "[grid\n", "grids/a.toml:2: "},
                    Wrong{kBase + "[gird]\n", "a.toml:2: unknown key \"gird\" (nearest: \"grid\")"},
                    Wrong{kBase + "[grid]\nstrategy.alhpa = [1]\n",
                          "a.toml:3: unknown key \"strategy.alhpa\" (nearest: \"strategy.alpha\")"},
                    Wrong{kBase + "[grid]\ntrain.lr = []\n", "a.toml:3: train.lr has no values"},
                    Wrong{kBase + "[grid]\ndata.batch = [1, 1, 4]\n", "a.toml:3: data.batch has 1 twice"},
                    Wrong{kBase + "[grid]\ntrain.lr = [nan]\n", "a.toml:3: train.lr: a value must not be"},
                    Wrong{kBase + "[grid]\nrun.seed = [1]\n", "seeds stand above the blocks"},
                    Wrong{kBase + "[grid]\nrun.name = [\"a\"]\n", "a.toml:3: run.name cannot vary"},
                    Wrong{kBase + "seeds = [1, 1]\n", "seeds has a number twice"},
                    Wrong{kBase + "seeds = 1\n", "seeds must be a list"},
                    Wrong{kBase + "[[zip]]\ntrain.lr = [1, 2]\nrun.epochs = [1]\n",
                          "a.toml:4: run.epochs has 1 values and train.lr has 2"},
                    Wrong{kBase + "[zip]\ntrain.lr = [1]\n", "write [[zip]]"},
                    Wrong{kBase + "[grid]\ntrain.lr = [1]\n[[zip]]\ntrain.lr = [2]\n",
                          "a.toml:5: train.lr is varied already at grids/a.toml:3"},
                    Wrong{kBase + "[only.esgd]\nstrategy.tau = [1]\n",
                          "[only.esgd]: no strategy is called \"esgd\" (nearest: easgd)"},
                    Wrong{kBase + "[only.easgd]\nstrategy.name = [\"bsp\"]\n", "cannot change strategy.name"},
                    Wrong{kBase + "[[exclude]]\ntrain.lr = 1\n",
                          "a.toml:3: [[exclude]]: this grid does not vary train.lr"},
                    Wrong{kBase + "[grid]\ntrain.lr = [1]\n[[exclude]]\ntrain.lr = 2\n",
                          "a.toml:5: [[exclude]]: train.lr is never 2"},
                    Wrong{kBase + "[[exclude]]\n", "would leave out every run"}));

TEST(GridFileTest, AnOverrideTakesTheKeyOutOfTheGrid) {
  auto file = parsed(kBase +
                     "seeds = [1, 2]\n[grid]\ntrain.lr = [1, 2]\nrun.epochs = [1, 2]\n[only.easgd]\nstrategy.tau = "
                     "[1]\n[[zip]]\ntrain.momentum = [0.5]\n");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_TRUE(fix(*file, {"train.lr=0.5", "strategy.tau = 3", "run.seed=7", "data.batch=8"}).has_value());
  EXPECT_THAT(file->axes, ElementsAre(Axis{"run.epochs", {"1", "2"}, "grids/a.toml:5"}));
  EXPECT_TRUE(file->only[0].axes.empty());
  EXPECT_TRUE(file->seeds.empty());
  EXPECT_FALSE(fix(*file, {"train.momentum=0.9"}).has_value());
  EXPECT_FALSE(fix(*file, {"run.name=mine"}).has_value());
}

TEST(GridFileTest, AMissingFileIsAConfigError) {
  const auto file = load("none/at/all.toml", experiment::schema());
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().message, "cannot read grid none/at/all.toml: No such file or directory");
}

}  // namespace
}  // namespace troupe::grid
