// The optimizers of programs go on where they were: after a resume, in a replay of it, and in segments of a journal that begin in mid-run. The
// scripted guest steps with momentum, so that a velocity that was lost changes every number after it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/apps/launch/launched.hpp"

namespace troupe::apps {
namespace {

class LaunchedResumes : public Launched {
 protected:
  /// Goes on with the newest run.
  [[nodiscard]] Outcome resume(const Words& options = {}) const {
    Words all{TROUPE_BINARY, "launch", "--resume", run(), "--plain", "--json"};
    all.insert(all.end(), options.begin(), options.end());
    return run_program(all);
  }
  /// LOADs that worker `name` has heard.
  [[nodiscard]] Words loads_of(const std::string& name) const {
    Words loads;
    std::istringstream log(folder_.read("log." + name));
    for (std::string line; std::getline(log, line);)
      if (line.starts_with("LOAD ")) loads.push_back(line);
    return loads;
  }
  /// Of a run of 2 epochs that goes on to 4, and of one of 4.
  void expect_same(const Words& options) {
    const Words words{"samples=40", "batch=4", "momentum=0.9"};
    auto longer = options, shorter = options;
    longer.insert(longer.end(), {"--epochs", "4"});
    shorter.insert(shorter.end(), {"--epochs", "2"});
    const auto whole = launch(longer, words).at("center_hash");
    const auto half = launch(shorter, words).at("center_hash");
    EXPECT_NE(half, whole);
    const auto outcome = resume({"--epochs", "4"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out).at("center_hash"), whole);
    EXPECT_EQ(outcome.err.find("anew"), std::string::npos) << outcome.err;
    expect_replays();
  }
};

TEST_F(LaunchedResumes, OneWorkerOfBspGoesOnBitForBit) { expect_same({"--workers", "1", "--strategy", "bsp"}); }

TEST_F(LaunchedResumes, WorkersOfBspGoOnBitForBit) {
  expect_same({"--workers", "2", "--strategy", "bsp"});
  expect_same({"--workers", "2", "--strategy", "bsp", "--set", "strategy.combine=updates"});
}

// The strategies with a centre begin with its parameters, and with each worker's own optimizer.
TEST_F(LaunchedResumes, WorkersOfACentreKeepTheirOptimizers) {
  const Words words{"samples=40", "batch=4", "momentum=0.9", log_word()};
  launch({"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=2", "--epochs", "2"}, words);
  EXPECT_EQ(loads_of("0"), Words{});
  const auto outcome = resume({"--epochs", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto* worker : {"0", "1"}) EXPECT_EQ(loads_of(worker), Words{"LOAD 16 from 0 of 16"}) << worker;
  expect_replays();
}

// The schedule of a session's programs depends on how many epochs that session was to have.
TEST_F(LaunchedResumes, EachSessionIsReplayedWithItsOwnEpochs) {
  for (const auto* strategy : {"easgd", "bsp"}) {
    launch({"--workers", "2", "--strategy", strategy, "--epochs", "2"}, {"samples=40", "batch=4", "schedule=1"});
    const auto outcome = resume({"--epochs", "4"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_replays();
  }
}

TEST_F(LaunchedResumes, WorkersThatAreNewBeginAnewOrAsTheOthers) {
  const Words words{"samples=48", "batch=4", "momentum=0.9", log_word()};
  launch({"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=2", "--epochs", "1"}, words);
  auto outcome = resume({"--epochs", "2", "--workers", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the checkpoint has no optimizer state of worker 2: its optimizer begins anew"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(loads_of("2"), Words{});
  launch({"--workers", "2", "--strategy", "bsp", "--epochs", "1"}, words);
  outcome = resume({"--epochs", "2", "--workers", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("anew"), std::string::npos) << outcome.err;
  EXPECT_EQ(loads_of("2"), Words{"LOAD 16 from 0 of 16"});
  expect_replays();
}

TEST_F(LaunchedResumes, OneProcessGoesOnBitForBit) {
  const auto config = folder_.write("a.toml", "[model]\ncommand = [\"" TROUPE_SCRIPTED_GUEST
                                              "\", \"samples=48\", \"momentum=0.9\"]\n[cluster]\nworkers = 2\n"
                                              "[strategy]\nname = \"bsp\"\n[run]\ndir = \"" +
                                                  folder_.file("runs") + "\"\n");
  const auto train = [&](Words words, const char* epochs) {
    words.insert(words.begin(), {TROUPE_BINARY, "train"});
    words.insert(words.end(), {"--quiet", "--json", "--set", std::string("run.epochs=") + epochs});
    const auto outcome = run_program(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false).value("center_hash", "");
  };
  const auto whole = train({config}, "4");
  EXPECT_NE(train({config}, "2"), whole);
  EXPECT_EQ(train({"--resume", run()}, "4"), whole);
  expect_replays();
}

// A journal of a size: its segments begin in mid-run, with what the optimizers were then.
TEST_F(LaunchedResumes, SegmentsInMidRunBeginWithTheOptimizers) {
  for (const auto* strategy : {"bsp", "easgd", "gossip"}) {
    std::size_t starts = 0;
    // A segment begins only once its start state is on disk. Longer steps give a slow disk the time.
    for (const auto* step_ms : {"0", "4", "24"}) {
      launch({"--workers", "2", "--strategy", strategy, "--set", "run.journal=30 KB", "--set", "run.hash_every=5",
              "--set", std::string("cluster.synthetic_step_ms=") + step_ms, "--epochs", "8"},
             {"samples=400", "batch=4", "momentum=0.9", "state_bytes=1000"});
      starts = 0;
      for (const auto& entry : std::filesystem::directory_iterator(run()))
        starts += entry.path().string().ends_with(".start.safetensors") ? 1 : 0;
      if (starts >= 2) break;
    }
    EXPECT_GE(starts, 2U) << strategy;
    const auto replay = troupe({"replay", run(), "--json"});
    EXPECT_EQ(replay.code, 0) << strategy << replay.err;
    EXPECT_GE(nlohmann::json::parse(replay.out, nullptr, false).value("hashes", 0), 10) << strategy << replay.out;
  }
}

TEST_F(LaunchedResumes, AStateThatDoesNotFitIsOneErrorBeforeTraining) {
  launch({"--workers", "1", "--strategy", "bsp", "--epochs", "1"}, {"samples=40", "momentum=0.9"});
  const auto config = contents(run() + "/config.toml");
  const auto at = config.find("\"momentum=0.9\"");
  ASSERT_NE(at, std::string::npos) << config;
  std::ofstream(run() + "/config.toml") << config.substr(0, at) << "\"state_bytes=20\", " << config.substr(at);
  const auto outcome = run_program({TROUPE_BINARY, "launch", "--resume", run(), "--quiet", "--epochs", "2"});
  EXPECT_EQ(outcome.code, 69) << outcome.err;
  EXPECT_NE(
      outcome.err.find(
          "worker 0: the start state was not loaded: the state of its optimizer that was saved, 16 bytes, is not taken "
          "by the program: the program has failed: a state of 16 bytes, not of 20"),
      std::string::npos)
      << outcome.err;
  EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
}

}  // namespace
}  // namespace troupe::apps
