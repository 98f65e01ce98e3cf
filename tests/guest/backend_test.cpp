// What the engine and a guest say to each other, and when: docs/formats/guest.md. The numbers are those of programs/scripted_guest.cpp.
#include "guest/backend.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/guest/scripted.hpp"

namespace troupe::guest {
namespace {

/// t_j(k) of the program.
double target(int j, int k) { return ((7 * k + 3 * j) % 11) / 10.0; }
/// The gradient of kSamples: p_j − mean t_j.
double gradient(int j, double p) { return p - (target(j, 0) + target(j, 1)) / 2; }
/// Element j of the program's: three of w, then b at the next multiple of 16 floats.
std::size_t place(int j) { return j < 3 ? static_cast<std::size_t>(j) : 16; }

class GuestBackendTest : public testing::Test {
 protected:
  ~GuestBackendTest() override { EXPECT_FALSE(has_children()); }
  [[nodiscard]] GuestProgram program(std::vector<std::string> words = {}) const {
    words.push_back("log=" + folder_.file("log"));
    return scripted(std::move(words));
  }
  /// The worker's log after WELCOME.
  [[nodiscard]] std::vector<std::string> heard() const {
    auto lines = logged(folder_, "0");
    while (!lines.empty() && !lines.front().starts_with("WELCOME")) lines.erase(lines.begin());
    if (!lines.empty()) lines.erase(lines.begin());
    return lines;
  }
  tests::Folder folder_;
};

using Lines = std::vector<std::string>;

TEST_F(GuestBackendTest, AProgramSaysWhatItIs) {
  const ScriptedRun run(program({R"(statistics=[["mean",[2]]])", "samples=7", "batch=3", "epochs=5"}));
  ASSERT_TRUE(run.said) << run.said.error().message;
  EXPECT_EQ(run.said->plan.samples, 7);
  EXPECT_EQ(run.said->plan.batch, 3);
  EXPECT_EQ(run.said->plan.epochs, 5);
  EXPECT_EQ(run.said->parameters, (std::vector<float>{0, 0.5, 1, 1.5}));
  EXPECT_EQ(run.said->statistics, (std::vector<float>{0, 0}));
  EXPECT_EQ(logged(folder_, "0"), Lines{"descriptors 3"});  // nothing of the engine's is open in it
  const auto lines = logged(folder_, "evaluator");
  ASSERT_GE(lines.size(), 1U);
  EXPECT_EQ(lines[0], "WELCOME evaluator of 1 gradients false buckets [] offsets [0,16]");
}

TEST_F(GuestBackendTest, AStepLeavesTheGradientsAndReportsTheirBuckets) {
  const ScriptedRun run(program());
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(true);
  ASSERT_TRUE(replica) << replica.error().message;
  EXPECT_EQ((*replica)->gradients().size(), 32U);
  std::vector<int> buckets;
  auto batch = batch_of(kSamples, 3);
  batch.epoch = 2;
  batch.epoch_position = 2.3;  // of 40 samples
  const auto result = (*replica)->step(batch, [&](int bucket) { buckets.push_back(bucket); });
  ASSERT_TRUE(result) << result.error().message;
  double loss = 0;
  for (int j = 0; j < 4; ++j) {
    EXPECT_FLOAT_EQ((*replica)->gradients()[place(j)], static_cast<float>(gradient(j, j / 2.0)));
    EXPECT_FLOAT_EQ((*replica)->parameters()[place(j)], static_cast<float>(j / 2.0));  // not stepped
    for (const int k : kSamples) loss += std::pow(j / 2.0 - target(j, k), 2) / 4;
  }
  EXPECT_NEAR(result->loss, loss, 1e-6);
  EXPECT_EQ(result->samples, 2);
  EXPECT_EQ(buckets, std::vector{0});
  EXPECT_EQ(heard(), Lines{"STEP epoch 2 position 12 flags 0 factor 1.000000 samples 0 1"});
}

TEST_F(GuestBackendTest, OptimizeStepsWithWhatTheStrategyHasMadeOfTheGradients) {
  const ScriptedRun run(program());
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(true);
  ASSERT_TRUE(replica);
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  for (int j = 0; j < 4; ++j) (*replica)->gradients()[place(j)] = static_cast<float>(j + 1);
  (*replica)->apply({.lr = 0.5F}, {});
  for (int j = 0; j < 4; ++j)  // lr = 0.1, factor 0.5
    EXPECT_FLOAT_EQ((*replica)->parameters()[place(j)], static_cast<float>(j / 2.0 - 0.05 * (j + 1)));
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 1), {}));
  (*replica)->apply({.lr = 1}, {});
  EXPECT_EQ(heard(), (Lines{"STEP epoch 0 position 0 flags 0 factor 1.000000 samples 0 1", "OPTIMIZE 1 0.500000",
                            "STEP epoch 0 position 0 flags 0 factor 1.000000 samples 0 1", "OPTIMIZE 2 1.000000"}));
}

TEST_F(GuestBackendTest, WithoutAStrategyForGradientsTheGuestStepsWithinTheStep) {
  const ScriptedRun run(program());
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  EXPECT_TRUE((*replica)->gradients().empty());
  auto batch = batch_of(kSamples, 0);
  batch.lr = 0.25;
  std::vector<int> buckets;
  ASSERT_TRUE((*replica)->step(batch, [&](int bucket) { buckets.push_back(bucket); }));
  const auto version = (*replica)->parameters_version();
  (*replica)->apply({.lr = 0.25F}, {});
  EXPECT_GT((*replica)->parameters_version(), version);
  for (int j = 0; j < 4; ++j)
    EXPECT_FLOAT_EQ((*replica)->parameters()[place(j)], static_cast<float>(j / 2.0 - 0.025 * gradient(j, j / 2.0)));
  EXPECT_EQ(buckets, std::vector{0});
  EXPECT_EQ(heard(), Lines{"STEP epoch 0 position 0 flags 1 factor 0.250000 samples 0 1"});
  EXPECT_EQ(logged(folder_, "0")[2], "WELCOME 0 of 2 gradients false buckets [] offsets [0,16]");
}

// A strategy writes to the vectors in place: the guest computes with what is there.
TEST_F(GuestBackendTest, WhatAStrategyWritesIsWhatTheGuestComputesWith) {
  const ScriptedRun run(program());
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  for (int j = 0; j < 4; ++j) (*replica)->parameters()[place(j)] = 10;
  (*replica)->parameters_written();
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  for (int j = 0; j < 4; ++j)
    EXPECT_FLOAT_EQ((*replica)->parameters()[place(j)], static_cast<float>(10 - 0.1 * gradient(j, 10)));
}

TEST_F(GuestBackendTest, MirrorsAreFetchedBeforeTheyAreReadAndToldWhenTheyWereWritten) {
  const ScriptedRun run(program({"mirrors=1"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  EXPECT_FLOAT_EQ((*replica)->parameters()[place(3)], 1.5F);
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 1), {}));
  double p = 1.5;
  for (int k = 0; k < 2; ++k) p -= 0.1 * gradient(3, p);
  EXPECT_NEAR((*replica)->parameters()[place(3)], p, 1e-6);
  (void)(*replica)->parameters();  // no second SYNC: nothing is newer there
  (void)(*replica)->statistics();
  (*replica)->parameters()[place(3)] = 10;
  (*replica)->parameters_written();
  (*replica)->parameters_written();
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 2), {}));
  EXPECT_NEAR((*replica)->parameters()[place(3)], 10 - 0.1 * gradient(3, 10), 1e-6);
  const std::string step = "STEP epoch 0 position 0 flags 1 factor 1.000000 samples 0 1";
  EXPECT_EQ(heard(), (Lines{step, step, "SYNC", "CHANGED", step, "SYNC"}));
}

TEST_F(GuestBackendTest, MirrorsAreToldBeforeOptimizeToo) {
  const ScriptedRun run(program({"mirrors=1"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(true);
  ASSERT_TRUE(replica);
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  (*replica)->parameters()[place(0)] = 7;
  (*replica)->gradients()[place(0)] = 1;
  (*replica)->parameters_written();
  (*replica)->apply({.lr = 1}, {});
  EXPECT_NEAR((*replica)->parameters()[place(0)], 6.9, 1e-6);
  EXPECT_EQ(heard(), (Lines{"STEP epoch 0 position 0 flags 0 factor 1.000000 samples 0 1", "SYNC", "CHANGED",
                            "OPTIMIZE 1 1.000000", "SYNC"}));
}

TEST_F(GuestBackendTest, AProgramWithoutAnOptimizerStepsByItself) {
  const ScriptedRun run(program({"optimizer=0"}));
  ASSERT_TRUE(run.graph);
  EXPECT_FALSE(run.said->introduction.has_optimizer);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  EXPECT_FLOAT_EQ((*replica)->parameters()[place(3)], static_cast<float>(1.5 - 0.1 * gradient(3, 1.5)));
}

TEST_F(GuestBackendTest, TensorsWithoutElementsHaveNoPlace) {
  const ScriptedRun run(program({R"(tensors=[["none",[0,4]],["w",[3]],["also none",[0]],["b",[]]])"}));
  ASSERT_TRUE(run.graph);
  EXPECT_EQ(run.said->parameters.size(), 4U);
  auto replica = run.worker(true);
  ASSERT_TRUE(replica) << replica.error().message;
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  EXPECT_FLOAT_EQ((*replica)->gradients()[16], static_cast<float>(gradient(3, 1.5)));
}

TEST_F(GuestBackendTest, RunningValuesAreShared) {
  const ScriptedRun run(program({R"(statistics=[["mean",[2]],["var",[]]])"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  for (int k = 0; k < 3; ++k) ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  EXPECT_EQ((*replica)->statistics()[0], 3.0F);  // steps
}

TEST_F(GuestBackendTest, LargeModelsHaveBucketsFromTheEnd) {
  const ScriptedRun run(program({R"(tensors=[["a",[300000]],["b",[5]],["c",[300000]],["d",[7]]])"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(true);
  ASSERT_TRUE(replica);
  const auto& buckets = (*replica)->buckets();
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].offset, 300016U);  // c and d; 16 floats are a unit
  EXPECT_EQ(buckets[1].offset, 0U);
  EXPECT_EQ(buckets[1].count, 300016U);
  EXPECT_EQ(buckets[0].count, (*replica)->layout()->arena_floats() - 300016U);
  std::vector<int> order;
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), [&](int bucket) { order.push_back(bucket); }));
  EXPECT_EQ(order, (std::vector{0, 1}));
}

TEST_F(GuestBackendTest, TheFirstEvaluatorIsTheOneThatDescribed) {
  const ScriptedRun run(program());
  ASSERT_TRUE(run.graph);
  auto replica = run.evaluator();
  ASSERT_TRUE(replica);
  for (int j = 0; j < 4; ++j) (*replica)->parameters()[place(j)] = static_cast<float>(j);
  (*replica)->parameters_written();
  const auto found = (*replica)->evaluate(batch_of(kSamples, 0));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_DOUBLE_EQ(found->loss, 14);  // Σ p²
  EXPECT_EQ(found->samples, 8);
  EXPECT_EQ(found->top1, 2);  // a quarter
  ASSERT_TRUE((*replica)->evaluate(batch_of(kSamples, 0)));
  const auto lines = logged(folder_, "evaluator");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1], "LAST");
  EXPECT_EQ(lines[2], "EVALUATE");
  EXPECT_EQ(lines[3], "EVALUATE");
  auto second = run.evaluator();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE((*second)->evaluate(batch_of(kSamples, 0)));
}

TEST_F(GuestBackendTest, AProgramMayHaveNoEvaluation) {
  const ScriptedRun run(program({"when=NOTHING", "fault=none"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.evaluator();
  ASSERT_TRUE(replica);
  for (int k = 0; k < 2; ++k) {
    const auto found = (*replica)->evaluate(batch_of(kSamples, 0));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->samples, 0);
  }
}

TEST_F(GuestBackendTest, AReplicaThatEndsLetsItsProgramEnd) {
  const ScriptedRun run(program());
  ASSERT_TRUE(run.graph);
  ASSERT_TRUE(run.worker(true));
  EXPECT_EQ(heard(), Lines{"END 75 it needs nothing more of this program"});
}

TEST_F(GuestBackendTest, WhatItPrintsComesLineByLine) {
  const ScriptedRun run(program({"output=hello"}));
  ASSERT_TRUE(run.graph);
  std::mutex mutex;
  Lines lines;
  {
    auto replica = run.backend->compile(*run.graph, {.batch = 4, .on_output = [&](const std::string& line) {
                                                       const std::scoped_lock lock(mutex);
                                                       lines.push_back(line);
                                                     }});
    ASSERT_TRUE(replica);
  }
  EXPECT_EQ(lines, Lines{"hello"});
}

TEST_F(GuestBackendTest, OnlyModelsOfProgramsAreCompiled) {
  const auto backend = make_backend(program());
  const auto graph = nn::Graph::sequential("net", {1, 2, 2}, {nn::LinearLayer{2, {}}}, nn::Loss::softmax_cross_entropy);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(backend->compile(*graph, {}).error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::guest
