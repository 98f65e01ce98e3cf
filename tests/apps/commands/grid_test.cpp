// Whole grids of the real program: what a user sees of results, of an invalid file, of failing runs, and of Ctrl-C.
#include <sys/prctl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/journal.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kGridBase =
    tests::tiny_config("[run]\nepochs = 1\ncheckpoint_every = \"never\"", "[train]\nlr = 0.1\nmomentum = 0.5\n");

class GridTest : public testing::Test {
 protected:
  std::vector<std::string> grid(std::string_view text, std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"grid", folder_.write("small.toml", "base = \"" + base_ + "\"\n" + std::string(text)),
                                 "--set", "run.dir=" + folder_.file("runs")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string directory() const { return folder_.file("runs/small"); }
  std::vector<std::string> run_directories() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory()))
      if (entry.is_directory()) all.push_back(entry.path().string());
    return all;
  }
  static std::vector<std::string> names(const Outcome& outcome) {
    std::vector<std::string> all;
    const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
    if (json.is_object())
      for (const auto& run : json["results"]) all.push_back(run["name"]);
    return all;
  }
  std::string csv_line(std::size_t number) const {
    std::istringstream text(contents(directory() + "/results.csv"));
    std::string line;
    for (std::size_t i = 0; i <= number; ++i) std::getline(text, line);
    return line;
  }

  TemporaryDirectory folder_;
  std::string base_ = folder_.write("base.toml", kGridBase);
};

TEST_F(GridTest, DryRunListsTheRunsOfTheFile) {
  const auto outcome =
      troupe(grid("seeds = [1, 2]\n"
                  "[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\n"
                  "[[zip]]\ntrain.lr = [0.1, 0.2]\ntrain.momentum = [0.9, 0.5]\n"
                  "[only.easgd]\n\"strategy.tau\" = [1, 4]\n"
                  "[[exclude]]\ntrain.lr = 0.2\nstrategy.tau = 4\n",
                  {"--dry-run", "--json", "--set", "run.seed=3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(names(outcome), testing::ElementsAre("bsp_lr=0.1_momentum=0.9", "bsp_lr=0.2_momentum=0.5",
                                                   "easgd_lr=0.1_momentum=0.9_tau=1", "easgd_lr=0.1_momentum=0.9_tau=4",
                                                   "easgd_lr=0.2_momentum=0.5_tau=1"));
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(json["forecast_s"].is_number());
  EXPECT_EQ(json["results"][0]["seed"], 3);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("runs")));

  const auto plain = troupe(grid("[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\n", {"--dry-run"}));
  EXPECT_THAT(plain.out, HasSubstr("2 runs in " + directory() + "; forecast: about "));
}

TEST_F(GridTest, RunsEverythingOnceAndPrintsATable) {
  const std::string text = "seeds = [1, 2]\n[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\n";
  const auto first = troupe(grid(text, {"--jobs", "2"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("strategy  done  test.accuracy"));
  EXPECT_THAT(first.out, HasSubstr("easgd     2/2   0."));
  EXPECT_THAT(first.err, HasSubstr("4/4 done "));
  EXPECT_EQ(first.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(run_directories().size(), 4u);
  EXPECT_THAT(csv_line(0), testing::StartsWith("strategy.name,seed,status,exit_code,error,run,"));
  EXPECT_THAT(csv_line(4), testing::StartsWith("easgd,2,done,0,," + directory() + "/"));
  for (const auto& run : run_directories()) EXPECT_TRUE(std::filesystem::exists(run + "/summary.json")) << run;

  // The same grid again has nothing to do; another seed adds its two runs and does not touch the others.
  const auto csv = contents(directory() + "/results.csv");
  EXPECT_THAT(troupe(grid(text)).err, HasSubstr("4 of them done before"));
  EXPECT_EQ(contents(directory() + "/results.csv"), csv);
  const auto more =
      troupe(grid("seeds = [2, 3]\n[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\n", {"--quiet", "--json"}));
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(more.err, "");
  EXPECT_EQ(nlohmann::json::parse(more.out)["done"], 4);
  EXPECT_EQ(run_directories().size(), 6u);
}

TEST_F(GridTest, EveryCombinationIsCheckedBeforeAnyRuns) {
  const auto value =
      troupe(grid("[grid]\nstrategy.name = [\"bsp\", \"easgd\"]\n[only.easgd]\nstrategy.tau = [4, 0]\n"));
  EXPECT_EQ(value.code, 78);
  EXPECT_TRUE(is_one_line(value)) << value.err;
  EXPECT_THAT(
      value.err,
      HasSubstr("small.toml:5: strategy.tau = 0: must be between 1 and 1,000,000,000 (in the run with strategy.name = "
                "\"easgd\", strategy.tau = 0)"));
  const auto model =
      troupe(grid("[grid]\nmodel.name = [\"mlp\", \"layers\"]\n[[zip]]\nmodel.layers = [[{type = "
                  "\"linear\", outputs = 5}]]\n"));
  EXPECT_EQ(model.code, 78);
  EXPECT_TRUE(is_one_line(model)) << model.err;
  EXPECT_THAT(model.err, HasSubstr("in the run with"));
  EXPECT_EQ(troupe(grid("[grid]\ntrain.lr = [1]\n", {"--sort", "test.acuracy"})).code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("runs")));
}

TEST_F(GridTest, ARunThatDivergesIsAResultAmongOthers) {
  const auto outcome =
      troupe(grid("[grid]\ntrain.lr = [100, 0.1]\nmodel.widths = [[200, 200, 200]]\n"
                  "model.activation = \"relu\"\nrun.epochs = 3\n"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(csv_line(1), testing::StartsWith("100,1,diverged,70,"));
  EXPECT_THAT(csv_line(1), HasSubstr("worker"));
  EXPECT_THAT(csv_line(2), testing::StartsWith("0.1,1,done,0,"));
  EXPECT_THAT(outcome.err, HasSubstr("1/2 diverged lr=100 (exit 70): "));
  EXPECT_THAT(troupe(grid("[grid]\ntrain.lr = [100, 0.1]\nmodel.widths = [[200, 200, 200]]\n"
                          "model.activation = \"relu\"\nrun.epochs = 3\n"))
                  .err,
              HasSubstr("2 of them done before"));
}

TEST_F(GridTest, FailedRunDoesNotStopTheOthersAndSetsTheExitCode) {
  const std::string text =
      "[grid]\ndata.name = [\"mnist\", \"glyphs\"]\ndata.path = \"" + folder_.file("none") + "\"\n";
  const auto outcome = troupe(grid(text));
  EXPECT_EQ(outcome.code, 65);
  EXPECT_THAT(outcome.err, HasSubstr("troupe: 1 of 2 runs failed, the first of them name=mnist: data set 'mnist' is "
                                     "missing"));
  EXPECT_THAT(csv_line(1), testing::StartsWith("mnist,1,failed,65,"));
  EXPECT_THAT(csv_line(2), testing::StartsWith("glyphs,1,done,0,"));
  EXPECT_THAT(outcome.out, HasSubstr("glyphs  1/1"));
}

TEST_F(GridTest, InterruptedGridContinues) {
  const std::string text = "[grid]\nrun.epochs = [1, 3000, 2]\n";
  // When the first run is done the second is running; the third never begins.
  const auto first = troupe_interrupted(grid(text, {"--jobs", "2"}), "1/3 done epochs=1");
  EXPECT_EQ(first.code, 130) << first.err;
  EXPECT_THAT(first.err, HasSubstr("interrupted with "));
  EXPECT_THAT(csv_line(2), testing::StartsWith("3000,1,interrupted,130,"));
  ASSERT_GE(run_directories().size(), 2u);

  const auto second = troupe(grid(text, {"--jobs", "2"}));
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("going on with epochs=3000"));
  EXPECT_THAT(second.err, Not(HasSubstr("starting epochs=1\n")));
  EXPECT_EQ(run_directories().size(), 3u);
  for (std::size_t row = 1; row <= 3; ++row) EXPECT_THAT(csv_line(row), HasSubstr(",done,0,"));
}

/// The process that trains in the only run directory, once the directory has a checkpoint.
pid_t writer_in(const std::string& directory) {
  constexpr int kMostLooks = 12'000;  // two minutes
  for (int look = 0; look < kMostLooks; ++look) {
    std::error_code not_yet;
    for (std::filesystem::directory_iterator entry(directory, not_yet), end; !not_yet && entry != end; ++entry) {
      if (!entry->is_directory() || !std::filesystem::exists(entry->path() / "config.toml")) continue;
      const auto journal = core::read_journal((entry->path() / "journal-0001.bin").string());
      if (!journal || journal->records.size() < 2) continue;  // nothing to resume
      const auto holder = experiment::DirectoryLock::holder(entry->path().string());
      if (holder && *holder) return std::stoi((*holder)->substr(std::string_view("process ").size()));
    }
    ::poll(nullptr, 0, 10);
  }
  return -1;
}

TEST_F(GridTest, RunThatCannotBeResumedKeepsItsFiles) {
  const std::string text = "[grid]\nrun.epochs = [3000]\n";
  auto arguments = grid(text);
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  const auto first = run_until(arguments, "starting small", [&](pid_t process) {
    ASSERT_GT(writer_in(directory()), 0);  // from now on there is a checkpoint to keep
    ::kill(process, SIGINT);
  });
  ASSERT_EQ(first.code, 130) << first.err;
  ASSERT_EQ(run_directories().size(), 1u);
  const auto run = run_directories()[0];
  // As a machine with another CPU would write it.
  auto plan = nlohmann::json::parse(contents(run + "/plan.json"));
  plan["implementations"].begin().value() = "jit:of_another_machine";
  std::ofstream(run + "/plan.json") << plan.dump() << "\n";

  const auto second = troupe(grid(text));
  EXPECT_EQ(second.code, 78) << second.err;
  EXPECT_THAT(second.err, HasSubstr("resume with --replan to choose anew"));
  EXPECT_THAT(second.err, HasSubstr("what it has reached stays in " + run));
  EXPECT_EQ(run_directories(), std::vector<std::string>{run}) << "nothing begins anew in its place";
  EXPECT_THAT(csv_line(1), HasSubstr(",failed,78,"));

  const auto third = troupe(grid(text, {"--replan"}));
  EXPECT_EQ(third.code, 0) << third.err;
  EXPECT_THAT(third.err, HasSubstr("going on with small"));
  EXPECT_EQ(run_directories(), std::vector<std::string>{run});
}

/// Returns when the process has ended, and its children are told; it can still be waited for.
bool has_ended(pid_t process) {
  siginfo_t info{};
  return tests::eventually([&] {
    return ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process;
  });
}

/// The state of a process, as the kernel shows it: 'T' is stopped.
char state_of(pid_t process) {
  const auto text = contents("/proc/" + std::to_string(process) + "/stat");
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '-' : text[name_end + 2];
}

/// While it exists, this process becomes the parent of processes whose own parent ends. Their process groups are no orphans then, which
/// Linux would continue when they are stopped.
class ChildSubreaper {
 public:
  ChildSubreaper() { EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  ~ChildSubreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  ChildSubreaper(const ChildSubreaper&) = delete;
  ChildSubreaper& operator=(const ChildSubreaper&) = delete;
};

/// The run is stopped before the first grid ends, which asks it to save: so it cannot have done so when the second grid comes.
TEST_F(GridTest, RestartedGridWaitsForRunsThatStillSave) {
  const ChildSubreaper subreaper;
  auto arguments =
      grid("[grid]\nrun.epochs = [5]\n", {"--set", "cluster.synthetic_step_ms=1000", "--set", "data.train_samples=20"});
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  const auto again = arguments;
  pid_t run = -1;
  Outcome second;
  run_until(arguments, "starting small", [&](pid_t process) {
    run = writer_in(directory());
    ASSERT_GT(run, 0);
    ::kill(run, SIGSTOP);
    EXPECT_TRUE(tests::eventually([&] { return state_of(run) == 'T'; }));
    ::kill(process, SIGKILL);
    EXPECT_TRUE(has_ended(process));
    EXPECT_EQ(state_of(run), 'T');
    // At once: the first grid's standard error may stay open until its run has ended.
    second = run_until(again, "waiting for small", [&](pid_t) { ::kill(run, SIGCONT); });
    ::kill(run, SIGCONT);  // also when the second grid did not wait
  });
  ASSERT_GT(run, 0);
  EXPECT_EQ(::waitpid(run, nullptr, 0), run);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("waiting for small: process " + std::to_string(run)));
  EXPECT_THAT(second.err, HasSubstr("going on with small"));
  EXPECT_EQ(run_directories().size(), 1u);
  EXPECT_THAT(csv_line(1), HasSubstr(",done,0,"));
}

}  // namespace
}  // namespace troupe::apps
