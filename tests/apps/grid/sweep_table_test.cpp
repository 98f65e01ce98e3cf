#include "apps/grid/sweep_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/grid/grid_file.hpp"
#include "experiment/settings.hpp"

namespace troupe::grid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

core::Result<GridFile> sweep_file(const std::string& text) {
  return parse("base = \"b\"\n" + text, "s.toml", experiment::schema());
}

TEST(SweepTable, ReadsItsKeysAndTheRanges) {
  const auto file = sweep_file(
      "[sweep]\nmethod = \"random\"\nmetric = \"test.loss\"\ngoal = \"min\"\nruns = 40\nepochs = 200\nhours = "
      "1.5\nseed = 7\neta = "
      "2\n"
      "rungs = [1, 4]\n[grid]\ntrain.lr = { log = [0.001, 1] }\nstrategy.alpha = { linear = [0.1, 0.9] }\n"
      "run.epochs = 9\n[only.easgd]\nstrategy.tau = { log = [1, 64] }\n");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->sweep);
  EXPECT_EQ(file->sweep->method, "random");
  EXPECT_EQ(file->sweep->metric, "test.loss");
  EXPECT_EQ(file->sweep->goal, "min");
  EXPECT_EQ(file->sweep->runs, 40);
  EXPECT_EQ(file->sweep->epochs, 200);
  EXPECT_EQ(file->sweep->hours, 1.5);
  EXPECT_EQ(file->sweep->seed, 7);
  EXPECT_EQ(file->sweep->eta, 2);
  EXPECT_THAT(file->sweep->rungs, ElementsAre(1, 4));
  ASSERT_EQ(file->axes.size(), 3U);
  EXPECT_EQ(file->axes[0].range, (Range{0.001, 1, true}));
  EXPECT_EQ(file->axes[1].range, (Range{0.1, 0.9, false}));
  EXPECT_FALSE(file->axes[2].range);
  EXPECT_EQ(file->only[0].axes[0].range, (Range{1, 64, true}));
}

TEST(SweepTable, AnyOfItsBudgetsIsEnough) {
  for (const char* budget : {"runs = 40", "epochs = 200", "hours = 1.5"})
    EXPECT_TRUE(sweep_file(std::string("[sweep]\n") + budget + "\n[grid]\ntrain.lr = { log = [0.001, 1] }\n"))
        << budget;
}

TEST(SweepTable, AFileWithoutItIsAGrid) { EXPECT_FALSE(sweep_file("[grid]\ntrain.lr = [1]\n")->sweep); }

struct WrongSweep {
  std::string text, where, message;
  friend std::ostream& operator<<(std::ostream& out, const WrongSweep& wrong) { return out << wrong.message; }
};
class SweepTableErrors : public testing::TestWithParam<WrongSweep> {};

TEST_P(SweepTableErrors, NameTheLineAndWhatToDo) {
  const auto file = sweep_file(GetParam().text);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, core::Errc::config);
  EXPECT_THAT(file.error().message, StartsWith("s.toml:" + GetParam().where + ": "));
  EXPECT_THAT(file.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SweepTableErrors,
    testing::Values(
        WrongSweep{"[sweep]\nmethod = \"bayes\"\nruns = 3\n", "3", "method must be one of \"tpe\", \"random\""},
        WrongSweep{"[sweep]\nschedule = 3\nruns = 3\n", "3", "schedule must be one of \"asha\", \"none\""},
        WrongSweep{"[sweep]\nrunz = 3\n", "3", "has no key \"runz\" (nearest: \"runs\")"},
        WrongSweep{"[sweep]\nseed = 3\n", "2", "must say when it ends: runs = 40, epochs = 200, hours = 1.5"},
        WrongSweep{"[sweep]\nepochs = 0.5\n", "3", "epochs must be a whole number from 1"},
        WrongSweep{"[sweep]\nruns = 0\n", "3", "runs must be a whole number from 1 to 100000"},
        WrongSweep{"[sweep]\nruns = 1.5\n", "3", "runs must be a whole number"},
        WrongSweep{"[sweep]\nhours = 0\n", "3", "hours must be a number above 0"},
        WrongSweep{"[sweep]\nruns = 3\neta = 1\n", "4", "eta must be a number above 1"},
        WrongSweep{"[sweep]\nruns = 3\nrungs = [3, 1]\n", "4", "rungs must be a list of epochs, each more than"},
        WrongSweep{"[sweep]\nruns = 3\nrungs = []\n", "4", "rungs must be a list of epochs"},
        WrongSweep{"[sweep]\nruns = 3\nrungs = [1]\nleast = 2\n", "5",
                   "has rungs, which take the place of least: take one of them out"},
        WrongSweep{"[sweep]\nruns = 3\nschedule = \"none\"\neta = 2\n", "5", "eta is for schedule = \"asha\""},
        WrongSweep{"[sweep]\nruns = 3\nmethod = \"random\"\nstart = 2\n", "5", "start is for method = \"tpe\""},
        WrongSweep{"sweep = 3\n", "2", "write [sweep]"},
        WrongSweep{"[grid]\ntrain.lr = { log = [0.1, 1] }\n", "3", "has a range, which is for sweeps: add [sweep]"},
        WrongSweep{"[only.easgd]\nstrategy.tau = { log = [1, 8] }\n", "3", "has a range, which is for sweeps"},
        WrongSweep{"[sweep]\nruns = 3\n[grid]\ntrain.lr = { log = [0, 1] }\n", "5", "begins above 0"},
        WrongSweep{"[sweep]\nruns = 3\n[grid]\ntrain.lr = { log = [1, 0.1] }\n", "5", "the lower one first"},
        WrongSweep{"[sweep]\nruns = 3\n[grid]\ntrain.lr = { log = [0.1, nan] }\n", "5", "the lower one first"},
        WrongSweep{"[sweep]\nruns = 3\n[grid]\ntrain.lr = { from = 1 }\n", "5", "a range is { linear = [low, high] }"},
        WrongSweep{"[sweep]\nruns = 3\n[grid]\ntrain.lr = { log = [1, 2], linear = [1, 2] }\n", "5", "a range is {"},
        WrongSweep{"[sweep]\nruns = 3\n[[zip]]\ntrain.lr = [1]\n", "5", "without [[zip]]"},
        WrongSweep{"[sweep]\nruns = 3\n[grid]\ntrain.lr = [1, 2]\n[[exclude]]\ntrain.lr = 1\n", "7",
                   "without [[exclude]]"},
        WrongSweep{"seeds = [1, 2]\n[sweep]\nruns = 3\n", "3", "seeds has one number at most"}));

}  // namespace
}  // namespace troupe::grid
