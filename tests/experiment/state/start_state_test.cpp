// What members of a resumed session start with: the steps of their hosts, and the number of their optimizer's step.
#include "experiment/state/start_state.hpp"

#include <gtest/gtest.h>

#include "experiment/settings.hpp"
#include "nn/checkpoint/tensors.hpp"
#include "tests/folder.hpp"

namespace troupe::experiment {
namespace {

using Steps = std::vector<std::uint64_t>;

class StartStateTest : public testing::Test {
 protected:
  RunSpec spec(std::vector<std::string> options) {
    options.emplace_back("train.optimizer=adam");
    auto config = core::Config::parse(schema(), "[model]\nname = \"mlp\"\nwidths = [3]\n[data]\nname = \"glyphs\"\n",
                                      "a.toml", options);
    return build_run_spec(resolve(std::move(*config)).value(), false).value();
  }
  /// A checkpoint of a run of two workers after 30 steps.
  Checkpoint checkpoint(const RunSpec& spec, const std::vector<std::string>& prefixes) {
    Checkpoint checkpoint;
    checkpoint.step = 60;
    checkpoint.graph = spec.graph;
    checkpoint.strategy = spec.settings->strategy;
    checkpoint.optimizer = "adam";
    checkpoint.vectors[""] = zeros(spec);
    for (const auto& prefix : prefixes) checkpoint.vectors[prefix] = zeros(spec);
    checkpoint.totals.worker_steps = {30, 30};
    return checkpoint;
  }
  static CanonicalVector zeros(const RunSpec& spec) {
    return std::make_shared<const std::vector<float>>(static_cast<std::size_t>(spec.graph->parameter_count()));
  }
};

TEST_F(StartStateTest, MomentsThatAllShareGoOnAtTheirNumber) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=3"});
  auto saved = checkpoint(spec, {optimizer_prefix(-1, 0), optimizer_prefix(-1, 1)});
  saved.optimizer_steps = {{optimizer_prefix(-1, 0), 12}, {optimizer_prefix(-1, 1), 12}};
  const auto start = start_state(spec, &saved);
  EXPECT_EQ(start.first_steps, (Steps{30, 30, 30}));
  EXPECT_EQ(start.optimizer_steps, (Steps{12, 12, 12}));
}

TEST_F(StartStateTest, WorkerWithoutMomentsOfItsOwnCountsFromZero) {
  const auto spec = this->spec({"strategy.name=bsp", "strategy.combine=updates", "cluster.workers=3"});
  auto saved = checkpoint(spec, {optimizer_prefix(0, 0), optimizer_prefix(0, 1)});
  saved.optimizer_steps = {{optimizer_prefix(0, 0), 30}, {optimizer_prefix(0, 1), 30}};
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{30, 0, 0}));
}

// A session of bsp that combined weights, before one that combines gradients.
TEST_F(StartStateTest, StatesThatMustBeEqualAreOneWorkers) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=3"});
  auto saved = checkpoint(
      spec, {optimizer_prefix(0, 0), optimizer_prefix(0, 1), optimizer_prefix(1, 0), optimizer_prefix(1, 1)});
  for (const int worker : {0, 1})
    for (const int k : {0, 1}) saved.optimizer_steps[optimizer_prefix(worker, k)] = worker == 0 ? 30 : 20;
  const auto all_have = [&](const StartState& start, int whose, std::uint64_t steps) {
    for (std::uint32_t worker = 0; worker < 3; ++worker) {
      ASSERT_EQ(start.optimizer_states[worker].size(), 2U);
      for (const int k : {0, 1})
        EXPECT_EQ(start.optimizer_states[worker][static_cast<std::size_t>(k)],
                  saved.vectors.at(optimizer_prefix(whose, k)));
      EXPECT_EQ(start.optimizer_steps[worker], steps);
    }
  };
  const auto start = start_state(spec, &saved);
  all_have(start, 0, 30);
  ASSERT_EQ(start.notes.size(), 1U);
  EXPECT_EQ(start.notes[0].text, "each worker had an optimizer state of its own: all go on with that of worker 0");
  for (const int k : {0, 1}) saved.vectors.erase(optimizer_prefix(0, k));  // worker 0 was lost
  all_have(start_state(spec, &saved), 1, 20);
  for (const int k : {0, 1}) {
    saved.vectors[optimizer_prefix(-1, k)] = zeros(spec);
    saved.optimizer_steps[optimizer_prefix(-1, k)] = 12;
  }
  all_have(start_state(spec, &saved), -1, 12);
  EXPECT_TRUE(start_state(spec, &saved).notes.empty());
}

// What sessions of before took over, for their replays.
TEST_F(StartStateTest, InArithmetic2EachWorkerTookItsOwnStateFirst) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=3"});
  auto saved = checkpoint(spec, {optimizer_prefix(0, 0), optimizer_prefix(1, 0)});
  const auto state_of = [&](std::uint32_t worker, int arithmetic) {
    const auto states = start_state(spec, &saved, arithmetic).optimizer_states[worker];
    return states.empty() ? nullptr : states[0];
  };
  EXPECT_EQ(state_of(1, 2), saved.vectors.at(optimizer_prefix(1, 0)));
  EXPECT_EQ(state_of(2, 2), nullptr);
  for (const std::uint32_t worker : {1U, 2U}) EXPECT_EQ(state_of(worker, 3), saved.vectors.at(optimizer_prefix(0, 0)));
  saved.vectors[optimizer_prefix(-1, 0)] = zeros(spec);
  EXPECT_EQ(state_of(1, 2), saved.vectors.at(optimizer_prefix(1, 0)));
  EXPECT_EQ(state_of(2, 2), saved.vectors.at(optimizer_prefix(-1, 0)));
}

TEST_F(StartStateTest, StateThatNothingTakesUpIsNamed) {
  const auto spec = this->spec({"strategy.name=bsp", "strategy.backup=1", "cluster.workers=2", "cluster.servers=1"});
  const auto saved = checkpoint(spec, {optimizer_prefix(-1, 0), optimizer_prefix(-1, 1)});
  const auto notes = start_state(spec, &saved).notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(
      notes[0].text,
      "the workers' optimizer state in the checkpoint, of \"adam\", is not taken up: workers of bsp keep none now");
}

// With and without train.ema the states of adam on the servers are the same.
TEST_F(StartStateTest, StatesOfServersGoOnWithAndWithoutAnAverageBesideThem) {
  const auto options = [](const std::string& ema) -> std::vector<std::string> {
    return {"strategy.name=downpour", "strategy.server_optimizer=adam", "cluster.workers=2", "train.ema=" + ema};
  };
  const auto with = spec(options("0.9")), without = spec(options("0"));
  for (const bool ends : {true, false}) {
    const auto &before = ends ? with : without, &now = ends ? without : with;
    auto saved = checkpoint(before, {server_state_prefix(0), server_state_prefix(1)});
    if (ends) saved.vectors[server_state_prefix(2)] = saved.vectors[kCenterPrefix] = zeros(before);
    saved.server_optimizer = before.needs.server_state_of;
    saved.totals.center_version = 77;
    const auto start = start_state(now, &saved);
    ASSERT_EQ(start.server_states.size(), ends ? 2U : 3U);
    for (const int k : {0, 1})
      EXPECT_EQ(start.server_states[static_cast<std::size_t>(k)], saved.vectors.at(server_state_prefix(k)));
    if (!ends) {
      EXPECT_EQ(start.server_states[2], saved.vectors.at(""));
    }
    EXPECT_EQ(start.center_version, 77U);
    for (const auto& note : start.notes) EXPECT_EQ(note.level, Note::Level::info) << note.text;
  }
}

TEST_F(StartStateTest, InArithmetic2StatesOfServersEndedWhereAnAverageBeganOrEnded) {
  const auto options = [](const std::string& ema) -> std::vector<std::string> {
    return {"strategy.name=downpour", "strategy.server_optimizer=adam", "cluster.workers=2", "train.ema=" + ema};
  };
  const auto with = spec(options("0.9")), without = spec(options("0"));
  for (const auto* before : {&with, &without})
    for (const auto* now : {&with, &without}) {
      auto saved = checkpoint(*before, {server_state_prefix(0), server_state_prefix(1)});
      saved.server_optimizer = before->needs.server_state_of;
      saved.totals.center_version = 77;
      const auto version = [&](int arithmetic) { return start_state(*now, &saved, arithmetic).center_version; };
      EXPECT_EQ(version(2), before == now ? 77U : 0U);
      EXPECT_EQ(version(3), 77U);
      const auto states = start_state(*now, &saved, 2).server_states;
      EXPECT_EQ(!states.empty() && states[0] != nullptr, before == now);
    }
}

TEST_F(StartStateTest, CheckpointOfVersion01HasTheStepsForIt) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=2"});
  const auto saved = checkpoint(spec, {optimizer_prefix(-1, 0), optimizer_prefix(-1, 1)});
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{30, 30}));
}

TEST_F(StartStateTest, StateThatIsDiscardedCountsFromZero) {
  const auto spec = this->spec({"strategy.name=easgd", "cluster.workers=2"});
  const auto start = start_state(spec, nullptr);
  EXPECT_EQ(start.optimizer_steps, (Steps{0, 0}));
  const auto saved = checkpoint(spec, {});
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{0, 0}));
  EXPECT_EQ(start_state(spec, &saved).first_steps, (Steps{0, 0}));
}

TEST_F(StartStateTest, AnotherOptimizerCountsFromZero) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=2"});
  auto saved = checkpoint(spec, {optimizer_prefix(-1, 0)});
  saved.optimizer = "momentum";
  saved.optimizer_steps = {{optimizer_prefix(-1, 0), 30}};
  EXPECT_EQ(start_state(spec, &saved).optimizer_steps, (Steps{0, 0}));
}

// The checkpoint comes from a rule with independent workers. In step, unequal first steps would make them wait forever.
TEST_F(StartStateTest, InStepAllBeginAtOneStep) {
  const auto spec = this->spec({"strategy.name=bsp", "cluster.workers=3"});
  auto saved = checkpoint(spec, {});
  saved.totals.worker_steps = {30, 27};
  EXPECT_EQ(start_state(spec, &saved).first_steps, (Steps{30, 30, 30}));
}

// The model of the checkpoint is an average; what was trained stands beside it.
TEST_F(StartStateTest, WithoutAnAverageTheTrainedParametersGoOn) {
  for (const char* strategy : {"bsp", "easgd", "gossip"}) {
    const auto with = this->spec({std::string("strategy.name=") + strategy, "train.ema=0.9", "cluster.workers=2"});
    const auto without = this->spec({std::string("strategy.name=") + strategy, "cluster.workers=2"});
    auto saved = checkpoint(with, {kCenterPrefix});
    const auto start = start_state(without, &saved);
    EXPECT_EQ(start.parameters, saved.vectors.at(kCenterPrefix)) << strategy;
    EXPECT_EQ(start.average, nullptr) << strategy;
    ASSERT_FALSE(start.notes.empty()) << strategy;
    EXPECT_NE(start.notes[0].text.find("from the trained parameters themselves"), std::string::npos);
    saved.vectors.erase(kCenterPrefix);  // as the beginning of a run with --init
    EXPECT_EQ(start_state(without, &saved).parameters, saved.vectors.at("")) << strategy;
  }
}

TEST_F(StartStateTest, InArithmetic2ARunWithoutAnAverageWentOnFromIt) {
  const auto with = spec({"strategy.name=easgd", "train.ema=0.9", "cluster.workers=2"});
  const auto without = spec({"strategy.name=easgd", "cluster.workers=2"});
  const auto saved = checkpoint(with, {kCenterPrefix});
  EXPECT_EQ(start_state(without, &saved, 2).parameters, saved.vectors.at(""));
  EXPECT_EQ(start_state(without, &saved, 3).parameters, saved.vectors.at(kCenterPrefix));
  EXPECT_EQ(start_state(with, &saved, 2).parameters, saved.vectors.at(kCenterPrefix));
}

OwnState bytes(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return std::make_shared<const std::vector<std::byte>>(view.begin(), view.end());
}

class OwnStates : public StartStateTest {
 protected:
  /// A spec of a program.
  RunSpec spec_of(const std::string& combine, int workers) {
    auto made =
        spec({"strategy.name=bsp", "strategy.combine=" + combine, "cluster.workers=" + std::to_string(workers)});
    made.graph = std::make_shared<const nn::Graph>(nn::Graph::of_program("program", {{"w", {3}}}, {}).value());
    return made;
  }
};

TEST_F(OwnStates, AreInTheFileByteForByte) {
  const auto spec = spec_of("updates", 2);
  auto saved = checkpoint(spec, {});
  saved.own_states = {{0, bytes(std::string("\0\xff one", 6))}, {11, bytes("")}};
  auto file = nn::parse_safetensors(encode(saved).value(), "a file", nn::Checksums::required);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_NE(file->find("worker.0.optimizer"), nullptr);
  EXPECT_EQ(file->find("worker.0.optimizer")->dtype, nn::DType::u8);
  EXPECT_EQ(file->text("own_states").value(), "worker.0.optimizer worker.11.optimizer");
  const auto read = load(*file, spec.graph);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->own_states.size(), 2U);
  EXPECT_EQ(*read->own_states.at(0), *saved.own_states.at(0));
  EXPECT_TRUE(read->own_states.at(11)->empty());
}

TEST_F(OwnStates, ANewcomersCheckpointHasAllButThem) {
  const auto spec = spec_of("updates", 2);
  auto saved = checkpoint(spec, {});
  saved.own_states = {{0, bytes(std::string(100'000, 'x'))}, {1, bytes("one")}};
  const tests::Folder folder;
  const auto path = folder.file("step-60.safetensors");
  ASSERT_TRUE(save_start(path, saved));
  const auto encoded = encode_for_newcomer(path);
  ASSERT_TRUE(encoded) << encoded.error().message;
  EXPECT_LT(encoded->size(), 100'000U);
  saved.own_states.clear();
  EXPECT_EQ(*encoded, encode(saved).value());
}

TEST_F(OwnStates, AFileThatNamesWhatItDoesNotHaveIsCorrupt) {
  const auto spec = spec_of("updates", 2);
  const auto saved = checkpoint(spec, {});
  for (const auto* const name :
       {"worker.0.optimizer", "w", "worker.00.optimizer", "optimizer", "worker.4294967296.optimizer"}) {
    const std::vector<float> floats(3);
    auto tensors = nn::canonical_tensors(*spec.graph, floats);
    nn::Metadata metadata{{"format", "troupe-checkpoint-1"},
                          {"step", "60"},
                          {"strategy", "bsp"},
                          {"optimizer", ""},
                          {"server_optimizer", ""},
                          {"leases", ""},
                          {"state", ""},
                          {"totals", to_text(saved.totals)},
                          {"own_states", name}};
    const auto encoded = nn::encode_safetensors(tensors, metadata).value();
    std::vector<std::byte> all;
    for (const auto& part : encoded.parts()) all.insert(all.end(), part.begin(), part.end());
    const auto file = nn::parse_safetensors(std::move(all), "a file", nn::Checksums::required);
    ASSERT_TRUE(file) << file.error().message;
    const auto read = load(*file, spec.graph);
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().code, core::Errc::corrupt);
    EXPECT_NE(read.error().message.find(name), std::string::npos) << read.error().message;
  }
}

TEST_F(OwnStates, AWorkerTakesItsOwnAndANewOneBeginsAnew) {
  const auto spec = spec_of("updates", 4);
  auto saved = checkpoint(spec, {});
  saved.own_states = {{0, bytes("zero")}, {2, bytes("two")}};
  const auto start = start_state(spec, &saved);
  ASSERT_EQ(start.own_states.size(), 4U);
  EXPECT_EQ(start.own_states[0], saved.own_states.at(0));
  EXPECT_EQ(start.own_states[1], nullptr);
  EXPECT_EQ(start.own_states[2], saved.own_states.at(2));
  ASSERT_EQ(start.notes.size(), 1U);
  EXPECT_EQ(start.notes[0].text, "the checkpoint has no optimizer state of workers 1, 3: their optimizers begin anew");
}

TEST_F(OwnStates, OptimizersThatWereNotEqualAndMustBeTakeTheFirstWorkers) {
  const auto spec = spec_of("gradients", 3);
  auto saved = checkpoint(spec, {});
  saved.own_states = {{0, bytes("zero")}, {1, bytes("one")}};
  saved.config = spec_of("updates", 2).settings->config.to_toml();
  const auto start = start_state(spec, &saved);
  for (const auto& state : start.own_states) EXPECT_EQ(state, saved.own_states.at(0));
  ASSERT_EQ(start.notes.size(), 1U);
  EXPECT_EQ(start.notes[0].text, "each worker had an optimizer state of its own: all go on with that of worker 0");
  const auto before = start_state(spec, &saved, 2);  // for a replay: each took its own
  EXPECT_EQ(before.own_states[1], saved.own_states.at(1));
  EXPECT_TRUE(before.notes.empty());
  // Of equal ones each takes its own, which has its random numbers, too.
  saved.config = spec_of("gradients", 2).settings->config.to_toml();
  const auto equal = start_state(spec, &saved);
  EXPECT_EQ(equal.own_states[1], saved.own_states.at(1));
  EXPECT_EQ(equal.own_states[2], saved.own_states.at(0));
  EXPECT_TRUE(equal.notes.empty());
}

// Workers of bsp that combine gradients step alike only with equal states.
TEST_F(OwnStates, OptimizersThatMustBeEqualTakeAnyWorkers) {
  const auto spec = spec_of("gradients", 3);
  auto saved = checkpoint(spec, {});
  saved.own_states = {{1, bytes("one")}};
  const auto start = start_state(spec, &saved);
  for (const auto& state : start.own_states) EXPECT_EQ(state, saved.own_states.at(1));
  EXPECT_TRUE(start.notes.empty());
}

TEST_F(OwnStates, NothingIsSaidOfARunThatBegins) {
  const auto spec = spec_of("gradients", 3);
  auto saved = checkpoint(spec, {});
  saved.step = 0;
  EXPECT_TRUE(start_state(spec, &saved).notes.empty());
}

}  // namespace
}  // namespace troupe::experiment
