// Whole runs of the real program: what a user sees of success, bad data, divergence, interruption and a full disk.
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

const std::string kRunConfig = tests::small_config("[run]\nepochs = 2", R"([train]
lr = 0.1
momentum = 0.9
[strategy]
name = "easgd"
tau = 4
)");

class RunTest : public testing::Test {
 protected:
  std::vector<std::string> train(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"train", config_, "--set", "run.dir=" + folder_.file("runs")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string only_run() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("runs"))) return entry.path().string();
    return {};
  }
  nlohmann::json summary() const { return nlohmann::json::parse(contents(only_run() + "/summary.json")); }
  bool no_run() const { return !std::filesystem::exists(folder_.file("runs")); }

  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", kRunConfig);
};

// Of three workers the slowest is passed over, and the third epoch begins in another process.
TEST_F(RunTest, AResumedRunThatPassesOverStepsHasOneNumberOfSamplesAndNoMoreThanItsEpochs) {
  const auto first = troupe(
      train({"--quiet", "--set", "strategy.name=\"bsp\"", "--set", "strategy.backup=1", "--set", "cluster.workers=3",
             "--set", "cluster.slowdown=[1, 1, 6]", "--set", "run.epochs=4", "--set", "run.max_epochs=2"}));
  ASSERT_EQ(first.code, 0) << first.err;
  const auto run = only_run();
  const auto second = troupe({"train", "--quiet", "--resume", run, "--set", "run.max_epochs=4"});
  ASSERT_EQ(second.code, 0) << second.err;
  const auto top = troupe({"top", run, "--json"});
  ASSERT_EQ(top.code, 0) << top.err;
  const auto state = nlohmann::json::parse(top.out);
  EXPECT_EQ(state["samples"], summary()["samples"]);
  EXPECT_EQ(state["steps"], summary()["steps"]);
  EXPECT_EQ(state["wall_s"], summary()["wall_s"]);
  EXPECT_EQ(state["epoch"], 4);
}

TEST_F(RunTest, JsonIsTheSummaryAndEvalAgreesWithIt) {
  const auto outcome = troupe(train({"--json", "--quiet"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  const auto summary = nlohmann::json::parse(outcome.out);
  for (const char* key : {"run", "strategy", "model", "dataset", "device", "precision", "workers", "servers", "epochs",
                          "steps", "samples", "wall_s", "train", "test", "time", "exchange", "center_hash"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  EXPECT_EQ(summary["steps"], 120);
  EXPECT_TRUE(summary["stopped_by"].is_null());
  EXPECT_EQ(contents(only_run() + "/summary.json"), outcome.out);

  const auto eval = troupe({"eval", only_run(), "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out)["accuracy"], summary["test"]["accuracy"]);
}

TEST_F(RunTest, PlainOutputWhereThereIsNoTerminal) {
  const auto outcome = troupe(train());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.err.find("epoch 2/2"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("accuracy"), std::string::npos) << outcome.err;
}

TEST_F(RunTest, DivergenceIsExit70AndKeepsAFiniteCheckpoint) {
  for (const char* strategy : {"bsp", "easgd"}) {
    const auto outcome =
        troupe(train({"--quiet", "--set", "train.lr=100", "--set", "model.widths=[200, 200, 200]", "--set",
                      "model.activation=relu", "--set", std::string("strategy.name=") + strategy}));
    EXPECT_EQ(outcome.code, 70) << outcome.err;
    EXPECT_NE(outcome.err.find("worker"), std::string::npos) << outcome.err;
    // Of a step, or of pushes that a server has refused: which is first is up to the threads.
    EXPECT_TRUE(outcome.err.find("step") != std::string::npos || outcome.err.find("in a row") != std::string::npos)
        << outcome.err;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file("runs"))) {
    EXPECT_EQ(troupe({"eval", entry.path().string(), "--json"}).code, 0);
  }
}

TEST_F(RunTest, BrokenIdxFilesAreExit65AndLeaveNoRunBehind) {
  const auto big_endian = [](std::uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                       static_cast<char>(value)};
  };
  const auto images = big_endian(2051) + big_endian(2) + big_endian(28) + big_endian(28) + std::string(2 * 784, 'x');
  const auto labels = big_endian(2049) + big_endian(2) + std::string{1, 2};
  struct Case {
    std::string images, labels, says;
  };
  for (const auto& broken : {Case{"\x01\x02\x03\x04" + images.substr(4), labels, "begins with"},
                             Case{images.substr(0, images.size() - 5), labels, "train-images"},
                             Case{images, labels.substr(0, labels.size() - 1) + "\x0b", "label"}}) {
    std::filesystem::create_directories(folder_.file("mnist"));
    for (const char* split : {"train", "t10k"}) {
      const bool train = split == std::string_view("train");
      folder_.write("mnist/" + std::string(split) + "-images-idx3-ubyte", train ? broken.images : images);
      folder_.write("mnist/" + std::string(split) + "-labels-idx1-ubyte", train ? broken.labels : labels);
    }
    const auto outcome =
        troupe(train({"--quiet", "--set", "data.name=mnist", "--set", "data.path=" + folder_.file("mnist")}));
    EXPECT_EQ(outcome.code, 65) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_NE(outcome.err.find(broken.says), std::string::npos) << outcome.err;
    EXPECT_TRUE(no_run());
  }
}

TEST_F(RunTest, ShapesAndClassesThatDoNotFitAreExit78) {
  for (const char* layers :
       {"[{type=\"linear\", outputs=5}]", "[{type=\"conv2d\", outputs=4, kernel=40}, {type=\"linear\", outputs=10}]"}) {
    const auto outcome =
        troupe(train({"--quiet", "--set", "model.name=layers", "--set", std::string("model.layers=") + layers}));
    EXPECT_EQ(outcome.code, 78) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_TRUE(no_run());
  }
}

TEST_F(RunTest, OutOfMemoryIsExit71AndNamesTheSize) {
  // 784 x 16,000,000 weights are 50 GB; the process may have 4 GB.
  const auto within = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sh", "-c", "ulimit -v 4000000 && exec \"$0\" \"$@\"", TROUPE_BINARY});
    return run_program(arguments);
  };
  if (within({"doctor"}).code != 0)
    GTEST_SKIP() << "the program does not start within 4 GB of addresses (a sanitizer?)";
  const auto checked = within({"check", config_, "--set", "model.widths=[16000000]"});
  EXPECT_EQ(checked.code, 71) << checked.err;
  EXPECT_TRUE(is_one_line(checked)) << checked.err;
  EXPECT_NE(checked.err.find("parameters of mlp: cannot allocate 50"), std::string::npos) << checked.err;
  const auto trained = within(train({"--quiet", "--set", "model.widths=[16000000]"}));
  EXPECT_EQ(trained.code, 71) << trained.err;
  EXPECT_TRUE(is_one_line(trained)) << trained.err;
  EXPECT_NE(trained.err.find("memory"), std::string::npos) << trained.err;
  EXPECT_EQ(trained.err.find("disk"), std::string::npos) << trained.err;
  EXPECT_TRUE(no_run());
}

TEST_F(RunTest, AnInterruptSavesACheckpointAndTheRunGoesOn) {
  const auto first = troupe_interrupted(train({"--plain", "--set", "run.epochs=100000"}), "epoch 1/");
  EXPECT_EQ(first.code, 130) << first.err;
  EXPECT_NE(first.err.find("run directory " + only_run() + "\n"), std::string::npos) << first.err;
  EXPECT_TRUE(first.err.ends_with("troupe: interrupted; go on with `troupe train --resume " + only_run() + "`\n"))
      << first.err;
  EXPECT_EQ(summary()["stopped_by"], "interrupt");
  const auto again = troupe_interrupted({"train", "--resume", only_run(), "--plain"}, "epoch ");
  EXPECT_EQ(again.code, 130) << again.err;
  EXPECT_NE(again.err.find("resuming from"), std::string::npos) << again.err;
  EXPECT_EQ(troupe({"eval", only_run(), "--json"}).code, 0);
}

/// As when an ssh connection is lost.
TEST_F(RunTest, AClosedTerminalSavesACheckpoint) {
  auto arguments = train({"--plain", "--set", "run.epochs=100000", "--set", "run.checkpoint_every=never"});
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  const auto closed = run_until(arguments, "epoch 1/", [](pid_t child) { ::kill(child, SIGHUP); });
  EXPECT_EQ(closed.code, 130) << closed.err;
  EXPECT_TRUE(saved_after_step_0(only_run()));
}

TEST_F(RunTest, Sigusr1SavesACheckpointAndTheRunGoesOn) {
  auto arguments = train({"--plain", "--set", "run.epochs=100000", "--set", "run.checkpoint_every=never"});
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  bool saved = false;
  const auto outcome = run_until(arguments, "epoch 1/", [&](pid_t child) {
    ::kill(child, SIGUSR1);
    saved = tests::eventually([this] { return saved_after_step_0(only_run()); });
    ::kill(child, SIGINT);
  });
  EXPECT_TRUE(saved);
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("is saved, as requested\n"), std::string::npos) << outcome.err;
}

/// A grid passes the signal on, also to a run that reads its configuration. A pipe in place of the file makes the run wait there.
TEST_F(RunTest, Sigusr1BeforeTrainingDoesNotEndTheProcess) {
  const auto script = std::string("mkfifo pipe && { ") + TROUPE_BINARY +
                      " train pipe & } && exec 3> pipe && kill -USR1 $! && echo '[nosuch]' >&3 && exec 3>&- && wait $!";
  const auto outcome = run_program({"bash", "-c", "cd " + folder_.path() + " && " + script});
  EXPECT_EQ(outcome.code, 78) << outcome.err;
}

TEST_F(RunTest, ATimeLimitIsNamedAndItsModelEvaluated) {
  const auto outcome = troupe(train({"--plain", "--set", "run.epochs=100000", "--set", "run.max_seconds=0.4"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("run.max_seconds = 0.4: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" of 100000 epochs\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("stopped early, by run.max_seconds\n"), std::string::npos) << outcome.err;
  const auto metrics = contents(only_run() + "/metrics.jsonl");
  EXPECT_NE(metrics.find("run.max_seconds = 0.4: "), std::string::npos);
  EXPECT_NE(metrics.find("\"stopped_by\":\"max_seconds\""), std::string::npos);
  EXPECT_EQ(summary()["stopped_by"], "max_seconds");
  const auto eval = troupe({"eval", only_run(), "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out)["accuracy"], summary()["test"]["accuracy"]) << "of the last step's model";
  EXPECT_EQ(nlohmann::json::parse(eval.out)["loss"], summary()["test"]["loss"]);
}

/// The schedule of the learning rate is that of run.epochs, and no epoch is trained twice: in steps of one epoch, two and one the run reaches
/// the bits of one that was never stopped.
TEST_F(RunTest, ARunInPartsByAnEpochLimitReachesTheBitsOfAWholeOne) {
  const std::vector<std::string> same{"--plain",
                                      "--set",
                                      "run.epochs=4",
                                      "--set",
                                      "strategy.name=bsp",
                                      "--set",
                                      "train.lr_policy=polynomial",
                                      "--set",
                                      "cluster.kernels=fixed"};
  ASSERT_EQ(troupe(train(same)).code, 0);
  const auto whole = summary();
  const auto first_run = only_run();
  std::filesystem::remove_all(first_run);

  auto limited = same;
  limited.insert(limited.end(), {"--set", "run.max_epochs=1"});
  const auto outcome = troupe(train(limited));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("run.max_epochs = 1: the run ends after 1.00 of 4 epochs"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(summary()["stopped_by"], "max_epochs");
  EXPECT_EQ(summary()["epochs"], 1);
  const auto directory = only_run();
  for (const int limit : {3, 4}) {
    const auto resumed =
        troupe({"train", "--resume", directory, "--plain", "--set", "run.max_epochs=" + std::to_string(limit)});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(summary()["epochs"], limit);
  }
  EXPECT_TRUE(summary()["stopped_by"].is_null());
  EXPECT_EQ(summary()["steps"], whole["steps"]);
  EXPECT_EQ(summary()["center_hash"], whole["center_hash"]);
}

TEST_F(RunTest, AReachedTargetIsNamed) {
  const auto outcome = troupe(train({"--plain", "--set", "run.epochs=50", "--set", "run.target_accuracy=0.01"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("run.target_accuracy = 0.01: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the run ends after 1.00 of 50 epochs\n"), std::string::npos) << outcome.err;
  EXPECT_EQ(summary()["stopped_by"], "target_accuracy");
}

/// The kernel sends a signal, whose default ends the process without a word, and leaves the temporary file.
TEST_F(RunTest, ALimitOnTheSizeOfFilesIsExit74AndNamesTheFile) {
  auto command = train({"--plain", "--set", "model.name=mlp", "--set", "model.widths=[256]"});
  command.insert(command.begin(), {"prlimit", "--fsize=61440", TROUPE_BINARY});
  const auto outcome = run_program(command);
  EXPECT_EQ(outcome.code, 74) << outcome.err;
  EXPECT_NE(outcome.err.find(".safetensors"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("ulimit -f"), std::string::npos) << outcome.err;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.file(""))) {
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
}

TEST_F(RunTest, FullDiskKeepsTheOldCheckpointAndTheRunResumesLater) {
  const auto disk = folder_.file("disk");
  std::filesystem::create_directories(disk);
  // One checkpoint takes about 155 KB with its velocity: two fit, a third one does not.
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=420k") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  struct Unmount {
    std::string path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } const unmount{disk};

  const auto full = troupe(
      {"train", config_, "--plain", "--set", "run.dir=" + disk, "--set", "run.epochs=4", "--set", "strategy.name=bsp"});
  EXPECT_EQ(full.code, 74) << full.err;
  EXPECT_NE(full.err.find("space"), std::string::npos) << full.err;
  std::string run;
  for (const auto& entry : std::filesystem::directory_iterator(disk)) run = entry.path().string();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  EXPECT_EQ(troupe({"eval", run, "--json"}).code, 0);

  ASSERT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  const auto after = troupe({"train", "--resume", run, "--plain"});
  EXPECT_EQ(after.code, 0) << after.err;
}

}  // namespace
}  // namespace troupe::apps
