#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "tests/apps/launch/launched.hpp"

namespace troupe::apps {
namespace {

struct Strategy {
  std::string name;
  int workers;
  Words options;
};
std::ostream& operator<<(std::ostream& out, const Strategy& strategy) { return out << strategy.name; }

class LaunchedStrategies : public Launched, public testing::WithParamInterface<Strategy> {};

TEST_P(LaunchedStrategies, TrainEverySampleAndReplay) {
  const auto& strategy = GetParam();
  Words options{"--workers", std::to_string(strategy.workers)};
  options.insert(options.end(), strategy.options.begin(), strategy.options.end());
  const auto summary = launch(options, {"samples=48", "batch=4", "epochs=3", R"(statistics=[["mean",[2]]])"});
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("samples"), 144);
  EXPECT_EQ(summary.at("workers"), strategy.workers);
  double loss = 0;
  for (const double p : parameters()) loss += p * p;
  EXPECT_NEAR(summary.at("test").at("loss").get<double>(), loss,
              1e-5);  // what the evaluator finds of the model that is saved
  EXPECT_NEAR(summary.at("test").at("accuracy").get<double>(), 0.25, 1e-9);
  expect_replays();
}

INSTANTIATE_TEST_SUITE_P(
    , LaunchedStrategies,
    testing::Values(Strategy{"bsp", 2, {"--strategy", "bsp"}}, Strategy{"bsp_of_one", 1, {"--strategy", "bsp"}},
                    Strategy{"bsp_updates", 2, {"--strategy", "bsp", "--set", "strategy.combine=updates"}},
                    Strategy{"easgd", 2, {"--strategy", "easgd", "--set", "strategy.tau=2"}},
                    Strategy{"easgd_overlap",
                             2,
                             {"--strategy", "easgd", "--set", "strategy.tau=2", "--set", "strategy.overlap=wait"}},
                    Strategy{"sync_easgd", 2, {"--strategy", "sync_easgd", "--set", "strategy.tau=2"}},
                    Strategy{"downpour", 2, {"--strategy", "downpour"}}, Strategy{"ssp", 2, {"--strategy", "ssp"}},
                    Strategy{"local_sgd", 2, {"--strategy", "local_sgd", "--set", "strategy.tau=2"}},
                    Strategy{"diloco", 2, {"--strategy", "diloco", "--set", "strategy.tau=4"}},
                    Strategy{"mixed", 4, {"--strategy", "mixed", "--set", "strategy.group_size=2"}},
                    Strategy{"gossip", 3, {"--strategy", "gossip"}},
                    Strategy{"pairs", 2, {"--strategy", "pairs", "--set", "strategy.tau=2"}}),
    [](const auto& info) { return info.param.name; });

TEST_F(Launched, AConfigurationMayNameTheProgram) {
  const auto config = folder_.write(
      "a.toml", "[model]\ncommand = [\"" TROUPE_SCRIPTED_GUEST "\", \"samples=48\"]\n[cluster]\nworkers = 2\n");
  const auto outcome =
      run_program({TROUPE_BINARY, "launch", "--plain", "--config", config, "--set", "run.dir=" + folder_.file("runs")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_replays();
}

TEST_F(Launched, OneProcessTrainsAProgramToo) {
  const auto config = folder_.write(
      "a.toml", "[model]\ncommand = [\"" TROUPE_SCRIPTED_GUEST "\", \"samples=48\"]\n[cluster]\nworkers = 2\n");
  const auto outcome =
      run_program({TROUPE_BINARY, "train", config, "--plain", "--set", "run.dir=" + folder_.file("runs")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_replays();
}

TEST_F(Launched, AProgramThatComputesSomethingElseFailsItsReplay) {
  launch({"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=2"}, {"samples=48", "batch=4", "epochs=2"});
  const auto config = contents(run() + "/config.toml");
  const auto at = config.find("\"epochs=2\"");
  ASSERT_NE(at, std::string::npos) << config;
  std::ofstream(run() + "/config.toml") << config.substr(0, at) << "\"epochs=2\", \"lr=0.2\"" << config.substr(at + 10);
  const auto replay = troupe({"replay", run()});
  EXPECT_NE(replay.code, 0);
  EXPECT_TRUE(replay.err.find("the recording says") != std::string::npos) << replay.out << replay.err;
}

TEST_F(Launched, WhatProgramsPrintComesHomeWithAPrefix) {
  const auto outcome = run_program(command({"--workers", "2"}, {"output=hello from \x1b[31mme"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("worker 0: hello from ?[31mme\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("worker 1: hello from ?[31mme\n"), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("evaluator: hello from ?[31mme\n")) << outcome.err;
}

/// More than the notes that Troupe's own members may send.
TEST_F(Launched, ALineOfEachOfManyStepsComesHome) {
  const auto outcome = run_program(command({"--workers", "2", "--strategy", "bsp"}, {"samples=8", "lines=1500"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto* worker : {"0", "1"})
    for (int k = 0; k < 1500; ++k)
      ASSERT_NE(outcome.err.find(fmt::format("worker {}: line {}\n", worker, k)), std::string::npos) << worker << k;
}

TEST_F(Launched, AFloodOfLinesIsCutAndCounted) {
  constexpr int kLines = 60'000;
  const auto outcome =
      run_program(command({"--workers", "1", "--strategy", "bsp"}, {"samples=8", fmt::format("lines={}", kLines)}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  int shown = 0, left_out = 0;
  std::istringstream text(outcome.err);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("worker 0: line ")) ++shown;
    if (line.find("of worker 0's program are left out: it prints more than") != std::string::npos)
      std::erase(line, ','), left_out += std::stoi(line);
  }
  EXPECT_GE(shown, 20'000);
  EXPECT_GT(left_out, 0);
  EXPECT_EQ(shown + left_out, kLines);
}

/// A hash after every other step of each worker, also where exchanges of the next step are soon under way.
TEST_F(Launched, HashesWithinARunAreReplayed) {
  for (const auto* strategy : {"bsp", "pairs", "easgd"}) {
    const auto hashes = [&](const char* every) {
      launch({"--workers", "2", "--strategy", strategy, "--set", std::string("run.hash_every=") + every},
             {"samples=64", "batch=4", "epochs=2"});
      const auto replay = troupe({"replay", run(), "--json"});
      EXPECT_EQ(replay.code, 0) << strategy << replay.err;
      return nlohmann::json::parse(replay.out, nullptr, false).value("hashes", 0);
    };
    const int without = hashes("0");
    EXPECT_GE(hashes("2"), without + 8) << strategy;  // of 16 that are due
  }
}

TEST_F(Launched, SettingsOfSeveralProcessesHold) {
  const auto outcome = run_program(command({"--workers", "2", "--set", "exchange.wire=fp16"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Launched, AResumeKeepsWhatTheProgramDecides) {
  launch({"--workers", "1", "--strategy", "easgd"}, {"samples=8"});
  const auto outcome = run_program({TROUPE_BINARY, "launch", "--resume", run(), "--set", "train.accumulate=2"});
  EXPECT_EQ(outcome.code, 78) << outcome.err;
  EXPECT_NE(outcome.err.find("train.accumulate has no effect on a program of your own"), std::string::npos)
      << outcome.err;
}

TEST_F(Launched, TheRunIsCalledAsTheScript) {
  const auto script = folder_.write("my_script.sh", "exec " TROUPE_SCRIPTED_GUEST " samples=8\n");
  const auto outcome = run_program(command_of({"--workers", "1"}, {"/bin/sh", script, "--rate=0.5"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(run().find("-my_script"), std::string::npos) << run();
}

/// Rounds of 2 × 4 samples in epochs of 20: the last one begins with the last four, and is filled with the epoch's first four.
TEST_F(Launched, ATailIsFilledFromTheBeginningOfItsEpoch) {
  const Words options{"--workers", "2", "--strategy", "bsp"}, words{"samples=20", "batch=4", "epochs=2", log_word()};
  EXPECT_EQ(launch(options, words).at("samples"), 2 * 3 * 8);
  const auto first = steps_of("0"), second = steps_of("1");
  ASSERT_EQ(first.size(), 6U);
  ASSERT_EQ(second.size(), 6U);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    const auto begin = 3 * epoch;
    EXPECT_EQ(second[begin + 2], first[begin]);
    std::vector<int> all;
    for (std::size_t step = begin; step < begin + 3; ++step) {
      all.insert(all.end(), first[step].begin(), first[step].end());
      if (step < begin + 2) all.insert(all.end(), second[step].begin(), second[step].end());
    }
    std::ranges::sort(all);
    std::vector<int> each(20);
    std::iota(each.begin(), each.end(), 0);
    EXPECT_EQ(all, each) << epoch;
  }
}

/// Rounds of 2 × 4 samples in epochs of 20, also of a strategy that needs its workers' parameters to be equal.
TEST_F(Launched, WorkersInStepAreAtTheSamePlaceAndDoNotGoBack) {
  launch({"--workers", "2", "--strategy", "bsp"}, {"samples=20", "batch=4", "epochs=2", "schedule=1", log_word()});
  using Places = std::vector<std::pair<int, int>>;
  for (const auto* name : {"0", "1"})
    EXPECT_EQ(places_of(name), (Places{{0, 0}, {0, 8}, {0, 16}, {1, 0}, {1, 8}, {1, 16}})) << name;
  std::vector<double> p{0, 0.5, 1, 1.5};
  const auto first = steps_of("0"), second = steps_of("1");
  ASSERT_EQ(first.size(), 6U);
  for (std::size_t step = 0; step < 6; ++step) {
    auto all = first[step];
    all.insert(all.end(), second[step].begin(), second[step].end());
    const double done = (static_cast<double>(step / 3) + static_cast<double>(step % 3) * 8 / 20) / 2;
    for (int j = 0; j < 4; ++j)
      p[static_cast<std::size_t>(j)] -= 0.1 * (1 - done) * gradient(j, p[static_cast<std::size_t>(j)], all);
  }
  const auto reached = parameters();
  ASSERT_EQ(reached.size(), 4U);
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(reached[j], p[j], 1e-5) << j;
  expect_replays();
}

TEST_F(Launched, WithoutItsTailNoSampleIsTrainedTwice) {
  const auto summary = launch({"--workers", "2", "--strategy", "bsp", "--set", "data.drop_tail=true"},
                              {"samples=20", "batch=4", "epochs=1", log_word()});
  EXPECT_EQ(summary.at("samples"), 16);
  std::set<int> seen;
  for (const auto* name : {"0", "1"})
    for (const auto& step : steps_of(name)) seen.insert(step.begin(), step.end());
  EXPECT_EQ(seen.size(), 16U);
}

TEST_F(Launched, WarningsNameWhatTheUserWrote) {
  const auto outcome =
      run_program(command({"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=50"}, {"samples=8"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: --set: strategy.tau = 50 is longer"), std::string::npos) << outcome.err;
}

struct Refusal {
  std::string name;
  Words options;
  Words words;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Refusal& refusal) { return out << refusal.name; }

class LaunchedRefusals : public Launched, public testing::WithParamInterface<Refusal> {};

TEST_P(LaunchedRefusals, AreOneLineAndNoRun) {
  const auto outcome = run_program(command(GetParam().options, GetParam().words));
  EXPECT_EQ(outcome.code, 78) << outcome.err;
  EXPECT_TRUE(is_one_line(outcome)) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().says), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("runs")));
}

INSTANTIATE_TEST_SUITE_P(
    , LaunchedRefusals,
    testing::Values(
        Refusal{"Eamsgd",
                {"--strategy", "eamsgd"},
                {},
                R"(troupe: --strategy: strategy.name = "eamsgd" reads the velocity of the workers' optimizer, and the )"
                R"(optimizer is the program's own: use "easgd", and momentum in the program's optimizer)"},
        Refusal{
            "BackupWorkers",
            {"--strategy", "bsp", "--workers", "3", "--set", "strategy.backup=1"},
            {},
            R"(troupe: --set: strategy.backup steps the optimizer on the servers, and the optimizer is the program's )"
            R"(own: leave it out, or use "easgd")"},
        Refusal{
            "ServerOptimizer",
            {"--strategy", "downpour", "--set", "strategy.server_optimizer=adam"},
            {},
            R"(troupe: --set: strategy.server_optimizer steps an optimizer on the servers, and the optimizer is the )"
            R"(program's own: leave it out, or use "diloco")"},
        Refusal{"UnknownStrategy", {"--strategy", "eas"}, {}, R"(troupe: --strategy: strategy.name = "eas")"},
        Refusal{"StrategySetByKey",
                {"--strategy", "bsp", "--set", "strategy.name=eamsgd"},
                {},
                R"(troupe: --set: strategy.name = "eamsgd")"},
        Refusal{"DecodeThreads",
                {"--set", "data.decode_threads=2"},
                {},
                "troupe: --set: data.decode_threads has no effect on a program of your own"},
        Refusal{"BatchesOfOtherWorkers",
                {"--workers", "2", "--set", "data.batch=[4,4,4]"},
                {},
                "troupe: --set: data.batch"},
        Refusal{"BatchesBeyondTheProgramsOwn",
                {"--workers", "2", "--set", "data.batch=5"},
                {"batch=4"},
                "troupe: --set: data.batch = 5, and the program's run.batches has size=4: give a size of at least 5"},
        Refusal{"SilenceBeyondTheOthersPatience",
                {"--workers", "2", "--strategy", "bsp", "--set", "model.silence_s=1000"},
                {},
                "troupe: --set: model.silence_s = 1000, but other workers wait 600 s"},
        Refusal{"PatienceBelowTheSilence",
                {"--workers", "2", "--strategy", "bsp", "--set", "exchange.deadline_s=60"},
                {},
                "troupe: --set: model.silence_s = 600, but other workers wait 60 s"},
        Refusal{"NoOptimizerForGradients",
                {"--strategy", "bsp"},
                {"optimizer=0"},
                "exchanges gradients, and the program steps by itself"},
        Refusal{
            "LearningRate", {"--set", "train.lr=0.5"}, {}, "--set: train.lr has no effect on a program of your own"},
        Refusal{"Optimizer", {"--set", "train.optimizer=adam"}, {}, "train.optimizer has no effect"},
        Refusal{"Clipping", {"--set", "train.clip_norm=1"}, {}, "train.clip_norm has no effect"},
        Refusal{"NothingToTrain", {}, {"tensors=[]"}, "it has no parameters to train"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Launched, AnAccuracyThatTheProgramDoesNotTellIsNull) {
  const auto summary = launch({"--workers", "1", "--strategy", "bsp"},
                              {"samples=16", "when=EVALUATED", R"(fault=text:{"metrics": {"loss": 0.5}})"});
  const auto& test = summary.at("test");
  EXPECT_EQ(test.at("loss"), 0.5);
  EXPECT_TRUE(test.at("accuracy").is_null()) << summary;
  std::istringstream metrics(contents(run() + "/metrics.jsonl"));
  int reports = 0;
  for (std::string line; std::getline(metrics, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("kind") != "worker") continue;
    ++reports;
    EXPECT_TRUE(json.at("recent").at("accuracy").is_null()) << line;
  }
  EXPECT_GT(reports, 0);
  const auto listed = troupe({"runs", "list", folder_.file("runs"), "accuracy<0.5"});
  EXPECT_EQ(listed.out.find("scripted_guest"), std::string::npos) << listed.out;
  const auto evaluated = troupe({"eval", run()});
  EXPECT_NE(evaluated.out.find("evaluated by its program: loss 0.5000, "), std::string::npos) << evaluated.out;
}

TEST_F(Launched, AProgramBeforeTheDashesIsExplained) {
  for (const auto& words : {Words{"train.py"}, Words{"python3", "train.py", "--lr", "0.1"},
                            Words{"--workers", "2", "a"}, Words{"python3", "--", "train.py"}}) {
    Words all{"launch"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = troupe(all);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.err, "troupe: the program goes behind `--`: troupe launch --workers 2 -- python3 train.py\n");
  }
  const auto misspelt = troupe({"launch", "--wrokers", "2", "--", "python3", "train.py"});
  EXPECT_NE(misspelt.err.find("unknown flag --wrokers"), std::string::npos) << misspelt.err;
}

TEST_F(Launched, HelpBehindTheDashesIsTheProgramsOwn) {
  const auto outcome =
      troupe({"launch", "--set", "run.dir=" + folder_.file("runs"), "--", TROUPE_SCRIPTED_GUEST, "--help"});
  EXPECT_NE(outcome.err.find("scripted_guest: what is --help?"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.code, 0);
}

TEST_F(Launched, WithoutAProgramItSaysHowToGiveOne) {
  const auto outcome = troupe({"launch", "--workers", "2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("`troupe launch --workers 2 -- python3 train.py`"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace troupe::apps
