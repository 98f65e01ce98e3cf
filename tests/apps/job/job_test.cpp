// The real program under mpirun: ranks are the workers, only rank 0 prints, and a job ends as a whole.
#include "apps/job/job.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

using Arguments = std::vector<std::string>;

const std::string kJobConfig = tests::small_config("[run]\nepochs = 2", R"([train]
lr = 0.1
momentum = 0.9
[strategy]
name = "bsp"
[cluster]
workers = 2
)");

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

class JobTest : public testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"mpirun", "--version"}).code != 0) GTEST_SKIP() << "no mpirun (Debian: openmpi-bin)";
  }

  /// Trains in a run directory in this test's folder.
  Arguments train(const Arguments& more = {}) const {
    Arguments all{"train", config_, "--set", "run.dir=" + folder_.file("runs")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Arguments mpirun(std::size_t ranks, const Arguments& arguments, const Arguments& options = {}) {
    Arguments all{"mpirun", "--oversubscribe", "--bind-to", "none", "--quiet", "-n", std::to_string(ranks)};
    if (::geteuid() == 0) all.emplace_back("--allow-run-as-root");
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back(TROUPE_BINARY);
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  Arguments with(Arguments more) const {
    more.insert(more.begin(), {"--json", "--quiet"});
    return train(more);
  }
  static nlohmann::json parsed(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(count(outcome.out, "\n"), 1U) << outcome.out;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json();
  }
  std::string only_run() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("runs"))) return entry.path().string();
    return {};
  }
  /// Any accuracy ends the run after the epoch under way: mpirun, when a signal ends it, sleeps for seconds.
  Arguments resumed_to_its_end() const {
    return {"train", "--resume", only_run(), "--plain", "--set", "run.target_accuracy=0.000001"};
  }
  /// Processes with this test's folder among their arguments, except this program and mpirun.
  std::vector<pid_t> ranks() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto name = entry.path().filename().string();
      pid_t process = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc{}) continue;
      const auto arguments = contents(entry.path().string() + "/cmdline");
      if (arguments.starts_with(TROUPE_BINARY) && arguments.find(folder_.file("")) != std::string::npos)
        found.push_back(process);
    }
    return found;
  }

  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", kJobConfig);
};

/// As on most clusters with InfiniBand: an MPI over UCX has 2^23 − 1 message tags.
TEST_F(JobTest, TrainsOverAnMpiWithFewMessageTags) {
  const auto has = run_program({"ompi_info", "--parsable"});
  if (has.out.find("mca:pml:ucx:") == std::string::npos) GTEST_SKIP() << "this MPI is no Open MPI with the PML ucx";
  const Arguments over_ucx{"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"};
  const auto job = parsed(run_program(mpirun(2, with({"--set", "exchange.endpoint=mpi"}), over_ucx)));
  EXPECT_GT(job["test"]["accuracy"], 0.3);  // chance is 0.1
}

TEST_F(JobTest, SumsAreTheSameBitsAsInOneProcess) {
  for (const std::size_t ranks : {1U, 2U, 4U}) {
    SCOPED_TRACE(ranks);
    const auto alone = parsed(troupe(with({"--set", "cluster.workers=" + std::to_string(ranks)})));
    for (const std::string algorithm : {"asa", "shm"}) {
      SCOPED_TRACE(algorithm);
      const auto job = parsed(run_program(mpirun(ranks, with({"--set", "exchange.algorithm=" + algorithm}))));
      EXPECT_EQ(job["workers"], ranks);
      EXPECT_EQ(job["center_hash"], alone["center_hash"]);
      EXPECT_EQ(job["samples"], alone["samples"]);
    }
  }
}

TEST_F(JobTest, EveryEndpointCarriesTheSameBits) {
  const auto alone = parsed(troupe(with({"--set", "cluster.workers=4"})));
  for (const char* endpoint : {"shm", "tcp", "mpi"}) {
    SCOPED_TRACE(endpoint);
    const auto job =
        parsed(run_program(mpirun(2, with({"--set", "cluster.workers_per_rank=2", "--set", "exchange.algorithm=asa",
                                           "--set", std::string("exchange.endpoint=") + endpoint}))));
    EXPECT_EQ(job["workers"], 4);
    EXPECT_EQ(job["center_hash"], alone["center_hash"]);
  }
}

/// Only rank 0 reads the checkpoint.
TEST_F(JobTest, ARunFromACheckpointHasTheBitsOfOneProcess) {
  const auto first = parsed(troupe(with({"--set", "cluster.workers=2"})))["run"].get<std::string>();
  const auto alone = parsed(troupe(with({"--set", "cluster.workers=2", "--init", first})));
  for (const char* endpoint : {"shm", "tcp"}) {
    SCOPED_TRACE(endpoint);
    const auto job = parsed(run_program(mpirun(2, with({"--init", first, "--set", "exchange.algorithm=asa", "--set",
                                                        std::string("exchange.endpoint=") + endpoint}))));
    EXPECT_EQ(job["center_hash"], alone["center_hash"]);
  }
}

TEST_F(JobTest, ArUsesTheLibrarysSums) {
  const Arguments over_mpi{"--set", "exchange.endpoint=mpi", "--set", "exchange.algorithm=ar"};
  for (const std::size_t ranks : {1U, 3U}) {
    SCOPED_TRACE(ranks);
    EXPECT_GT(parsed(run_program(mpirun(ranks, with(over_mpi))))["test"]["accuracy"], 0.3);  // chance is 0.1
  }
  for (const char* other : {"cluster.workers_per_rank=2", "strategy.name=pairs"}) {
    auto arguments = with(over_mpi);
    arguments.insert(arguments.end(), {"--set", other});
    const auto refused = run_program(mpirun(2, arguments));
    EXPECT_EQ(refused.code, 78) << refused.err;
    EXPECT_EQ(count(refused.err, "sums over all ranks"), 1U) << refused.err;
  }
}

TEST_F(JobTest, AsynchronousRunsLearnAndAreReplayed) {
  for (const char* endpoint : {"auto", "mpi"}) {
    SCOPED_TRACE(endpoint);
    const auto job = parsed(run_program(mpirun(3, with({"--set", "strategy.name=easgd", "--set", "run.epochs=5",
                                                        "--set", std::string("exchange.endpoint=") + endpoint}))));
    EXPECT_GT(job["test"]["accuracy"], 0.3);
    const auto replay = troupe({"replay", only_run(), "--json"});
    ASSERT_EQ(replay.code, 0) << replay.err;
    EXPECT_EQ(nlohmann::json::parse(replay.out)["center_hash"], job["center_hash"]);
    EXPECT_EQ(troupe({"eval", only_run(), "--json"}).code, 0);
    std::filesystem::remove_all(folder_.file("runs"));
  }
}

/// The ranks read the files together, each its part, and train on copies, which are gone afterwards.
TEST_F(JobTest, StagedFilesAreTheSameData) {
  const auto files = folder_.file("shards"), stage = folder_.file("stage"), taken = folder_.file("a file");
  const auto converted =
      troupe({"data", "convert", "--set", "data.name=glyphs", "--set", "data.train_samples=300", "--set",
              "data.test_samples=100", "--to", "shards", "--picture", "png", "--per-file", "70", "--output", files});
  ASSERT_EQ(converted.code, 0) << converted.err;
  std::ofstream(files + "/classes.txt") << "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
  std::ofstream{taken};
  const auto staged = [&](const std::string& where) {
    return with({"--set", "data.name=shards", "--set", "data.path=" + files, "--set", "data.train_samples=0", "--set",
                 "data.test_samples=0", "--set", "data.resize=28", "--set", "data.stage=" + where});
  };
  for (const std::size_t ranks : {2U, 3U}) {
    const auto directly = parsed(run_program(mpirun(ranks, staged(""))));
    const auto together = parsed(run_program(mpirun(ranks, staged(stage))));
    EXPECT_EQ(together["center_hash"], directly["center_hash"]);
    EXPECT_TRUE(std::filesystem::is_empty(stage));
    const auto replayed = troupe({"replay", together["run"]});  // without copies
    EXPECT_EQ(replayed.code, 0) << replayed.err;
  }
  const auto refused = run_program(mpirun(2, staged(taken)));
  EXPECT_EQ(refused.code, 74) << refused.err;
  EXPECT_EQ(count(refused.err, "troupe: "), 1U) << refused.err;
  EXPECT_NE(refused.err.find(taken), std::string::npos) << refused.err;
}

TEST_F(JobTest, OnlyRankZeroPrints) {
  const auto plain = run_program(mpirun(3, train()));
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out, "");
  EXPECT_EQ(count(plain.err, "epoch 2/2"), 1U) << plain.err;
  EXPECT_EQ(count(plain.err, "is replaced by the job's: 3 ranks"), 1U) << plain.err;
  std::filesystem::remove_all(folder_.file("runs"));

  for (const char* wrong : {"strategy.tao=4", "cluster.workers_per_rank=0", "exchange.endpoint=inproc"}) {
    const auto refused = run_program(mpirun(3, train({"--set", wrong})));
    EXPECT_EQ(refused.code, 78) << refused.err;
    EXPECT_EQ(count(refused.err, "troupe: "), 1U) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.file("runs")));
  }
  const auto usage = run_program(mpirun(3, train({"--frobnicate"})));
  EXPECT_EQ(usage.code, 2) << usage.err;
  EXPECT_EQ(count(usage.err, "troupe: "), 1U) << usage.err;
}

TEST_F(JobTest, EvalAndCheckAnswerOnce) {
  ASSERT_EQ(troupe(train({"--quiet"})).code, 0);
  for (const Arguments& command : {Arguments{"check", config_}, {"eval", only_run(), "--json"}, {"models"}}) {
    const auto alone = troupe(command), job = run_program(mpirun(3, command));
    EXPECT_EQ(job.code, 0) << job.err;
    EXPECT_EQ(job.out, alone.out);
    EXPECT_EQ(job.err, alone.err);
  }
}

TEST_F(JobTest, WorkersThatDoNotFitTheRanksAreReported) {
  const auto asked = run_program(mpirun(3, train({"--quiet", "--set", "cluster.workers=8"})));
  EXPECT_EQ(asked.code, 78) << asked.err;
  EXPECT_EQ(
      count(asked.err, "--set: cluster.workers = 8, but mpirun has started 3 ranks of 1 worker each: start 8 ranks,"),
      1U)
      << asked.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("runs")));
  const auto written = run_program(mpirun(3, train({"--quiet", "--json"})));
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(count(written.err, "warning: " + config_ + ":"), 1U) << written.err;
  EXPECT_EQ(count(written.err, "cluster.workers = 2 is replaced by the job's: 3 ranks, 1 worker each"), 1U)
      << written.err;
  EXPECT_EQ(parsed(written)["workers"], 3);
}

TEST_F(JobTest, ALostRankEndsTheJobAndTheRunIsResumed) {
  for (const std::string strategy : {"bsp", "easgd"}) {
    SCOPED_TRACE(strategy);
    const auto lost =
        run_until(mpirun(3, train({"--plain", "--set", "run.epochs=100000", "--set", "strategy.name=" + strategy})),
                  "epoch 1/", [&](pid_t) {
                    const auto all = ranks();
                    ASSERT_EQ(all.size(), 3U);
                    ::kill(all.back(), SIGKILL);
                  });
    EXPECT_NE(lost.code, 0) << lost.err;
    EXPECT_TRUE(tests::eventually([&] { return ranks().empty(); }));
    const auto again = run_program(mpirun(3, resumed_to_its_end()));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_NE(again.err.find("resuming from"), std::string::npos) << again.err;
    std::filesystem::remove_all(folder_.file("runs"));
  }
}

TEST_F(JobTest, AnInterruptSavesACheckpointAndTheRunGoesOn) {
  // mpirun waits so many seconds before it asks its ranks to end, and as many again before it kills them, however far their checkpoint is.
  const Arguments patient{"--mca", "odls_base_sigkill_timeout", "10"};
  const auto forever = train({"--plain", "--set", "run.epochs=100000", "--set", "run.checkpoint_every=never"});
  const auto first = run_until(mpirun(2, forever, patient), "epoch 1/", [&](pid_t child) {
    ::kill(child, SIGUSR1);  // mpirun passes it on to its ranks
    EXPECT_TRUE(tests::eventually([&] { return saved_after_step_0(only_run()); }));
    ::kill(child, SIGINT);
    EXPECT_TRUE(
        tests::eventually([&] { return std::filesystem::exists(only_run() + "/summary.json") && ranks().empty(); }));
    ::kill(child, SIGKILL);  // it sleeps out its patience, whatever its ranks do
  });
  // Not on standard error: mpirun passes nothing on while it sleeps.
  EXPECT_NE(contents(only_run() + "/metrics.jsonl").find("is saved, as requested"), std::string::npos) << first.err;
  EXPECT_EQ(troupe({"eval", only_run(), "--json"}).code, 0) << first.err;
  EXPECT_TRUE(std::filesystem::exists(only_run() + "/summary.json")) << first.err;
  const auto again = run_program(mpirun(2, resumed_to_its_end()));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("resuming from"), std::string::npos) << again.err;
}

TEST(JobWithoutMpi, RanksWithoutTheModuleDoNotTrainAlone) {
  const TemporaryDirectory folder;
  const auto config = folder.write("config.toml", kJobConfig);
  const auto program = folder.file("troupe");  // without its modules
  std::filesystem::copy_file(TROUPE_BINARY, program);
  const auto rank = [&](const std::string& number) {
    return run_program({"env", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=" + number, program, "train", config});
  };
  const auto first = rank("0");
  EXPECT_EQ(first.code, 78);
  EXPECT_TRUE(is_one_line(first)) << first.err;
  EXPECT_NE(first.err.find("mpirun has started 2 ranks"), std::string::npos) << first.err;
  EXPECT_EQ(rank("1").code, 78);
  EXPECT_EQ(rank("1").err, "");
}

}  // namespace
}  // namespace troupe::apps
