// Programs that fail under `troupe launch`: what is lost, what goes on, and what is said.
#include <csignal>

#include <fmt/format.h>

#include "tests/apps/launch/launched.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

class LaunchedFaults : public Launched {
 protected:
  Outcome fails(const Words& options, const Words& words) const { return run_program(command(options, words)); }
  static void expect_says(const Outcome& outcome, std::string_view text) {
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  }
  static std::string last_line(const Outcome& outcome) {
    const auto text = outcome.err.substr(0, outcome.err.find_last_not_of('\n') + 1);
    return text.substr(text.rfind('\n') + 1);
  }
  /// easgd, long enough for a newcomer.
  static Words easgd(const Words& more = {}) {
    Words all{"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(LaunchedFaults, AProgramThatDoesNotJoinIsRefused) {
  const auto outcome =
      run_program(command_of({"--workers", "2"}, {"sh", "-c", "echo no module named troupe >&2; exit 3"}));
  EXPECT_EQ(outcome.code, 69);
  EXPECT_EQ(
      outcome.err,
      "evaluator: no module named troupe\ntroupe: the program has not called troupe.join; it ended with exit code 3; "
      "its last lines: no module named troupe\n");
}

TEST_F(LaunchedFaults, AProgramThatIsNotThereIsRefused) {
  const auto outcome = run_program(command_of({"--workers", "2"}, {"/nonexistent/program"}));
  EXPECT_EQ(outcome.code, 78);
  EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  expect_says(outcome, "/nonexistent/program cannot be started: No such file or directory");
}

TEST_F(LaunchedFaults, ASilentProgramIsRefusedInTime) {
  const auto outcome = run_program(command_of({"--workers", "2", "--set", "model.start_s=1"}, {"sleep", "1000"}));
  EXPECT_EQ(outcome.code, 75);
  expect_says(outcome, "the program has not called troupe.join for 1 s (model.start_s)");
}

// The evaluator comes first, and says what the run is.
TEST_F(LaunchedFaults, AnotherProgramThanItsNeighboursIsRefused) {
  const auto script =
      folder_.write("other.sh", "mkdir " + folder_.file("first") +
                                    " 2>/dev/null && exec " TROUPE_SCRIPTED_GUEST
                                    " samples=8\nexec " TROUPE_SCRIPTED_GUEST " samples=8 'tensors=[[\"v\",[2]]]'\n");
  const auto outcome = run_program(command_of({"--workers", "2"}, {"sh", script}));
  EXPECT_EQ(outcome.code, 78) << outcome.err;
  expect_says(outcome, "it is another one than that of the run: it has 1 parameters, and the run has 2");
}

TEST_F(LaunchedFaults, AnotherVersionOfTheProgramIsRefused) {
  const auto script =
      folder_.write("other.sh", "mkdir " + folder_.file("first") +
                                    " 2>/dev/null && exec " TROUPE_SCRIPTED_GUEST
                                    " samples=8\nexec " TROUPE_SCRIPTED_GUEST " samples=8 program=f00\n");
  const auto outcome = run_program(command_of({"--workers", "2"}, {"sh", script}));
  EXPECT_EQ(outcome.code, 78) << outcome.err;
  expect_says(outcome, "it is another one than that of the run: its frozen layers or its optimizer differ");
}

// As programs do that give run.batches their own part of the data, which is not Troupe's way.
TEST_F(LaunchedFaults, AnotherNumberOfSamplesIsRefusedBeforeTheFirstStep) {
  for (const auto* strategy : {"bsp", "easgd"})
    for (const auto* samples : {"20", "100"}) {
      const auto outcome = fails({"--workers", "2", "--strategy", strategy},
                                 {"samples=48", fmt::format("samples_here={}", samples), "who=1", log_word()});
      EXPECT_EQ(outcome.code, 78) << strategy << samples << outcome.err;
      expect_says(outcome,
                  fmt::format("run.batches of worker 1 has {} samples, and the run has 48: each worker gets numbers of "
                              "all samples",
                              samples));
      EXPECT_TRUE(steps_of("0").empty());
      // Nor does the other worker's program save a model that is not trained.
      const auto log = folder_.read("log.0");
      EXPECT_TRUE(log.empty() || log.find("END 75") != std::string::npos) << log;
      EXPECT_EQ(log.find("END 0"), std::string::npos) << log;
    }
}

TEST_F(LaunchedFaults, AnExceptionCostsItsWorkerAndSaysWhere) {
  const auto outcome = fails(
      easgd(), {"samples=48", "batch=4", "epochs=3", "fault=failed:ValueError: boom", "who=1", "nth=3", "pause_ms=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_says(outcome,
              "worker 1, step 2: the program has failed: ValueError: boom; it ended with exit code 1; "
              "Traceback |   line 7");
  EXPECT_NE(outcome.out.find("\"samples\":144"), std::string::npos) << outcome.out;  // its leases return
  expect_replays();
}

TEST_F(LaunchedFaults, AnEarlyExitCostsItsWorker) {
  const auto outcome =
      fails(easgd(), {"samples=48", "batch=4", "epochs=3", "fault=exit:0", "who=1", "nth=3", "pause_ms=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_says(outcome, "; it ended with exit code 0");
  expect_says(outcome, "its batches return, 1 of 2 workers go on");
  expect_replays();
}

TEST_F(LaunchedFaults, AHangCostsItsWorker) {
  // It limits the answers and the ends of the healthy programs, too.
  const auto outcome = fails(easgd({"--set", "model.silence_s=10"}),
                             {"samples=48", "batch=4", "epochs=3", "fault=hang", "who=1", "nth=3", "pause_ms=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_says(outcome, "the guest is silent for 10 s (model.silence_s)");
  expect_replays();
}

TEST_F(LaunchedFaults, RubbishCostsItsWorker) {
  const auto outcome =
      fails(easgd(), {"samples=48", "batch=4", "epochs=3", "fault=as:SYNCED", "who=1", "nth=3", "pause_ms=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_says(outcome, "the guest said SYNCED where DONE was due");
}

TEST_F(LaunchedFaults, AFailedOptimizerStepCostsItsWorker) {
  const auto outcome =
      fails({"--workers", "2", "--strategy", "ssp"},
            {"samples=48", "batch=4", "epochs=3", "fault=kill", "who=1", "when=STEPPED", "nth=3", "pause_ms=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_says(outcome, "killed by signal 9");
}

// The same program would fail again.
TEST_F(LaunchedFaults, WhenAllFailTheRunEndsWithTheirErrorAndNoAdviceToGoOn) {
  const auto outcome = fails(easgd(), {"samples=48", "batch=4", "epochs=3", "fault=failed:no memory", "who=workers",
                                       "nth=3", "pause_ms=5", "once=" + folder_.file("never/there")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;  // a folder that cannot be made: no fault
  const auto failed = fails(
      easgd(), {"samples=48", "batch=4", "epochs=3", "fault=failed:no memory", "who=workers", "nth=3", "pause_ms=5"});
  EXPECT_EQ(failed.code, 69) << failed.err;
  const auto last = last_line(failed);
  EXPECT_NE(last.find("step 2: the program has failed: no memory"), std::string::npos) << failed.err;
  EXPECT_TRUE(last.ends_with("; no worker is left")) << failed.err;
  EXPECT_EQ(failed.err.find("--resume"), std::string::npos) << failed.err;
}

// The failure may be known by its report or by the missing answer, whichever comes first.
TEST_F(LaunchedFaults, AStateThatCannotBeSavedIsTheProgramsFailure) {
  for (const auto* strategy : {"easgd", "bsp"})
    for (int again = 0; again < 3; ++again) {
      const auto outcome =
          fails({"--workers", "2", "--strategy", strategy},
                {"samples=48", "batch=4", "epochs=2", "fault=failed:no such kind", "who=workers", "when=STATE"});
      EXPECT_EQ(outcome.code, 69) << strategy << outcome.err;
      EXPECT_NE(last_line(outcome).find("the state of its optimizer: the program has failed: no such kind"),
                std::string::npos)
          << outcome.err;
      EXPECT_EQ(outcome.err.find("--resume"), std::string::npos) << outcome.err;
    }
}

TEST_F(LaunchedFaults, AnExceptionEndsABspRunWithItsOwnExitCode) {
  const auto outcome = fails({"--workers", "2", "--strategy", "bsp"},
                             {"samples=48", "batch=4", "epochs=3", "fault=failed:ValueError: boom", "who=1", "nth=3"});
  EXPECT_EQ(outcome.code, 69) << outcome.err;
  EXPECT_NE(last_line(outcome).find("worker 1, step 2: the program has failed: ValueError: boom"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find("--resume"), std::string::npos) << outcome.err;
}

TEST_F(LaunchedFaults, AProgramThatIsKilledBeforeItTrainsIsALostOne) {
  const auto outcome = fails({"--workers", "2"}, {"samples=48", "fault=kill", "when=READY"});
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  expect_says(outcome, "killed by signal 9");
}

// bsp cannot go on without a worker. Its neighbour may notice first that the worker's endpoint is closed, which is no reason.
TEST_F(LaunchedFaults, ABspRunSaysWhatKilledIt) {
  const auto outcome = fails({"--workers", "2", "--strategy", "bsp"},
                             {"samples=48", "batch=4", "epochs=3", "fault=kill", "who=1", "nth=3", "pause_ms=5"});
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_NE(last_line(outcome).find("it was killed by signal 9 (Killed)"), std::string::npos) << outcome.err;
  EXPECT_NE(last_line(outcome).find("; go on with `troupe launch --resume "), std::string::npos) << outcome.err;
}

TEST_F(LaunchedFaults, AKilledWorkerIsReplacedAndTheRunReplays) {
  nodes::Process run(command(easgd(), {"samples=4000", "batch=4", "epochs=100", "fault=kill", "who=1", "nth=3",
                                       "pause_ms=30", "once=" + folder_.file("once"), log_word()}));
  ASSERT_TRUE(run.says("killed by signal 9 (Killed)")) << run.err();
  ASSERT_TRUE(run.says("joined as a new member: 2 of 2 workers")) << run.err();
  const auto before = steps_of("1").size();
  EXPECT_TRUE(tests::eventually([&] { return steps_of("1").size() > before + 3; }));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  expect_replays();
}

TEST_F(LaunchedFaults, AnEvaluatorThatFailsIsSaid) {
  const auto outcome =
      fails(easgd(), {"samples=48", "batch=4", "epochs=3", "fault=failed:no test set", "when=EVALUATED"});
  EXPECT_EQ(outcome.code, 69) << outcome.err;
  expect_says(outcome, "the program has failed: no test set");
}

// A program saves its model there. The run itself is complete.
TEST_F(LaunchedFaults, AFailureAfterTheLastBatchIsSaid) {
  for (const auto& [who, name] : {std::pair{"evaluator", "the evaluator"}, std::pair{"1", "worker 1"}}) {
    const auto outcome = fails(easgd(), {"samples=48", "fault=exit:3", "when=END", std::string("who=") + who});
    EXPECT_EQ(outcome.code, 69) << outcome.err;
    EXPECT_EQ(last_line(outcome),
              fmt::format("troupe: {}: its program ended with exit code 3 after its last batch; the run itself is "
                          "complete, and its results are saved",
                          name));
    expect_says(outcome, ": warning: its program ended with exit code 3 after its last batch\n");
    EXPECT_NE(outcome.out.find("\"samples\":48"), std::string::npos) << outcome.out;
    expect_replays();
  }
}

TEST_F(LaunchedFaults, AnAccuracyInPercentEndsTheRun) {
  const auto outcome =
      fails(easgd(), {"samples=48", R"(fault=text:{"metrics":{"loss":1,"accuracy":83.4}})", "when=EVALUATED"});
  EXPECT_EQ(outcome.code, 69) << outcome.err;
  expect_says(outcome, "run.evaluate: \"accuracy\" is 83.4: it is a share of the samples, from 0 to 1");
}

TEST_F(LaunchedFaults, ADivergingProgramIsAdvisedAboutItsOwnLearningRate) {
  const auto outcome = fails({"--workers", "1", "--strategy", "bsp"}, {"samples=400", "lr=1e30"});
  EXPECT_EQ(outcome.code, 70) << outcome.err;
  expect_says(outcome, "; try a smaller learning rate in the program");
  EXPECT_EQ(outcome.err.find("train.lr"), std::string::npos) << outcome.err;
}

TEST_F(LaunchedFaults, ANodeStartsNoProgramsUnlessItMay) {
  nodes::NodeProcess node;
  ASSERT_TRUE(node.up()) << node.log();
  const auto outcome = run_program(command({"--workers", "1", "--nodes", node.name()}, {"samples=8"}));
  EXPECT_NE(outcome.code, 0);
  expect_says(outcome, "this node starts no programs");
  expect_says(outcome, "troupe node --programs");
}

TEST_F(LaunchedFaults, ANodeThatMayStartsThem) {
  nodes::Process node(nodes::program({"node", "--listen", "127.0.0.1:0", "--programs"}));
  const std::string sign = "listens on 127.0.0.1:";
  ASSERT_TRUE(node.says(sign)) << node.err();
  ASSERT_TRUE(node.says("\n")) << node.err();
  const auto port = std::stoi(node.err().substr(node.err().find(sign) + sign.size()));
  const auto outcome =
      run_program(command({"--workers", "2", "--nodes", "127.0.0.1:" + std::to_string(port)}, {"samples=48"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_replays();
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait(), 0) << node.err();
}

}  // namespace
}  // namespace troupe::apps
