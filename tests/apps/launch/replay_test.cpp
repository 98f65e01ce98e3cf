// Replays of programs whose next step depends on what only their process has, over the segments that newcomers begin; and of
// programs that do not compute the same again.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/journal.hpp"
#include "experiment/directory/run_records.hpp"
#include "nn/hash.hpp"
#include "tests/apps/launch/launched.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

struct Faulty {
  std::string name;
  Words options;  // of the strategy
  Words words{};  // of the program
};
std::ostream& operator<<(std::ostream& out, const Faulty& faulty) { return out << faulty.name; }

class LaunchedReplays : public Launched {
 protected:
  /// Of an endless run of short epochs. Three workers that exchange in each step move the centre by 3 lr / (1 - carry) = 0.06 of its
  /// error per round, so that no strategy diverges.
  [[nodiscard]] Words words(const Words& more = {}) const {
    Words all{"samples=120", "batch=4", "epochs=100000", "pause_ms=5", "lr=0.01", "carry=0.5", log_word()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] static Words of_strategy(Words words, const Words& strategy) {
    words.insert(words.end(), {"--set", "run.hash_every=1"});
    words.insert(words.end(), strategy.begin(), strategy.end());
    return words;
  }
  /// Each of these workers computes `steps` more.
  [[nodiscard]] bool advance(const Words& workers, std::size_t steps = 8) const {
    for (const auto& worker : workers) {
      const auto goal = steps_of(worker).size() + steps;
      if (!tests::eventually([&] { return steps_of(worker).size() >= goal; })) return false;
    }
    return true;
  }
  [[nodiscard]] std::size_t segments() const {
    std::size_t found = 0;
    for (const auto& file : std::filesystem::directory_iterator(run()))
      found += file.path().filename().string().starts_with("journal-") && file.path().extension() == ".bin" ? 1 : 0;
    return found;
  }
};

class LaunchedReplaysOfLosses : public LaunchedReplays, public testing::WithParamInterface<Faulty> {};

TEST_P(LaunchedReplaysOfLosses, ReachEveryHash) {
  nodes::Process run(command(of_strategy({"--workers", "3"}, GetParam().options), [this] {
    auto all = words({"fault=kill", "who=1", "nth=20", "once=" + folder_.file("once")});
    all.insert(all.end(), GetParam().words.begin(), GetParam().words.end());
    return all;
  }()));
  ASSERT_TRUE(run.says("killed by signal 9 (Killed)")) << run.err();
  ASSERT_TRUE(run.says("joined as a new member: 3 of 3 workers")) << run.err();
  EXPECT_TRUE(advance({"0", "1", "2"})) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_GE(segments(), 2U);
  expect_replays();
}

INSTANTIATE_TEST_SUITE_P(, LaunchedReplaysOfLosses,
                         testing::Values(Faulty{"ssp", {"--strategy", "ssp"}, {"mirrors=1"}},
                                         Faulty{"easgd_skip",
                                                {"--strategy", "easgd", "--set", "strategy.tau=2", "--set",
                                                 "strategy.overlap=skip"}},
                                         Faulty{"easgd_elsewhere",
                                                {"--strategy", "easgd", "--set", "strategy.tau=3"},
                                                {"mirrors=1", R"(statistics=[["mean",[2]]])"}},
                                         Faulty{"downpour", {"--strategy", "downpour"}},
                                         Faulty{"diloco", {"--strategy", "diloco", "--set", "strategy.tau=4"}}),
                         [](const auto& info) { return info.param.name; });

/// Makes the run's first segment one of this arithmetic.
void set_arithmetic(const std::string& run, int arithmetic) {
  auto plan = nlohmann::json::parse(contents(run + "/journal-0001.plan.json"));
  plan["arithmetic"] = arithmetic;
  const std::string text = plan.dump();
  std::ofstream(run + "/journal-0001.plan.json") << text << '\n';
  const auto hash = nn::hash64(std::as_bytes(std::span(text)));
  const auto journal = run + "/journal-0001.bin";
  auto records = core::read_journal(journal)->records;
  std::filesystem::remove(journal);
  auto writer = core::JournalWriter::create(journal);
  for (auto& record : records) {
    if (experiment::decode_plan(record)) record = experiment::encode(experiment::PlanRecord{hash});
    ASSERT_TRUE(writer->append(record.kind, record.payload));
  }
  ASSERT_TRUE(writer->flush());
}

// Recorded with 3 and relabelled: bsp's programs are told other positions than they were, so the replay diverges. On demand there are no rounds.
TEST_F(LaunchedReplays, ARecordingOfArithmetic2IsReplayedWithTheBatchesOwnPositions) {
  for (const auto* strategy : {"bsp", "easgd"}) {
    launch({"--workers", "2", "--strategy", strategy}, {"samples=40", "batch=4", "epochs=2", "schedule=1"});
    set_arithmetic(run(), 2);
    const auto replay = troupe({"replay", run()});
    EXPECT_EQ(replay.code, strategy == std::string("bsp") ? 70 : 0) << replay.err;
  }
}

// A session of arithmetic 2 that a newer version resumed.
TEST_F(LaunchedReplays, ASessionOfArithmetic2IsReplayedWithZerosForMissingGradientsAndOneOf3Without) {
  launch({"--workers", "1", "--strategy", "easgd", "--epochs", "1"}, {"samples=40", "batch=4", log_word()});
  const auto resumed = troupe({"launch", "--resume", run(), "--plain", "--epochs", "2"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  set_arithmetic(run(), 2);
  const auto log = folder_.file("log.0");
  std::filesystem::remove(log);
  const auto replay = troupe({"replay", run()});
  ASSERT_EQ(replay.code, 0) << replay.err;
  std::istringstream lines(contents(log));
  std::vector<bool> zeros;  // by session
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("WELCOME 0 ")) zeros.push_back(line.ends_with(R"( missing "zeros")"));
  EXPECT_EQ(zeros, (std::vector{true, false}));
}

// Two nodes: one is late, and one's program stands still for a while.
TEST_F(LaunchedReplays, OfALateNodeAndAStillProgramReachEveryHash) {
  nodes::NodeProcess first({.programs = true}), taken;
  ASSERT_TRUE(first.up() && taken.up());
  const auto port = taken.port();
  const auto both = first.name() + "," + taken.name();
  taken.process().kill();
  nodes::Process run(
      command(of_strategy({"--workers", "3", "--nodes", both, "--min-nodes", "1"},
                          {"--strategy", "easgd", "--set", "strategy.tau=2", "--set", "strategy.overlap=skip"}),
              words({"fault=bytewise", "go=" + folder_.file("on"), "who=0", "nth=10", "samples=4000"})));
  ASSERT_TRUE(tests::eventually([this] { return steps_of("0").size() == 10; })) << run.err();
  EXPECT_TRUE(advance({"1"})) << run.err();
  const nodes::NodeProcess late({.port = port, .programs = true});
  ASSERT_TRUE(late.up());
  folder_.write("on", "");
  ASSERT_TRUE(run.says("joined as a new member: 3 of 3 workers")) << run.err();
  EXPECT_TRUE(advance({"0", "1", "2"})) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_GE(segments(), 2U);
  expect_replays();
}

// A program that ran on has its state nowhere but in the segments before.
TEST_F(LaunchedReplays, WithoutTheSegmentsBeforeNameTheWorkerWhoseStateIsMissing) {
  nodes::Process run(command(of_strategy({"--workers", "3", "--set", "run.checkpoint_every=never"},
                                         {"--strategy", "easgd", "--set", "strategy.tau=2"}),
                             words({"fault=kill", "who=1", "nth=20", "once=" + folder_.file("once")})));
  ASSERT_TRUE(run.says("joined as a new member: 3 of 3 workers")) << run.err();
  EXPECT_TRUE(advance({"0", "1", "2"})) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  expect_replays();
  for (const auto* const name : {"journal-0001.bin", "journal-0001.start.safetensors"})
    std::filesystem::remove(std::filesystem::path(this->run()) / name);
  const auto replay = troupe({"replay", this->run()});
  EXPECT_EQ(replay.code, 65) << replay.out << replay.err;
  EXPECT_TRUE(is_one_line(replay)) << replay.out << replay.err;
  EXPECT_NE(replay.err.find("journal-0002.start.safetensors: the program of worker 0 ran on from the segment before"),
            std::string::npos)
      << replay.err;
}

// Worker 1 draws from the system's random numbers in its fifth step, which no replay can reproduce.
TEST_F(LaunchedReplays, OfAProgramWithoutFixedSeedsNameWorkerAndStep) {
  launch({"--workers", "2", "--strategy", "local_sgd", "--set", "strategy.tau=2", "--set", "run.hash_every=1"},
         {"samples=48", "batch=4", "epochs=2", "noise=5", "who=1"});
  const auto replay = troupe({"replay", run()});
  EXPECT_EQ(replay.code, 70) << replay.out << replay.err;
  EXPECT_TRUE(is_one_line(replay)) << replay.out << replay.err;
  EXPECT_NE(replay.err.find("/journal-0001.bin: worker 1, after step 5, event "), std::string::npos) << replay.err;
  EXPECT_NE(replay.err.find(": params has hash "), std::string::npos) << replay.err;
  EXPECT_NE(replay.err.find("random numbers from fixed seeds"), std::string::npos) << replay.err;
}

}  // namespace
}  // namespace troupe::apps
