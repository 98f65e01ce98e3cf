// Batch and local response normalisation against the double-precision reference, and their special properties: running statistics,
// and evaluation with other statistics than a step's.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

constexpr ActivationLayer kRelu{Activation::relu};

class Lrn : public BackendTestOver<LrnLayer> {};

TEST_P(Lrn, MatchesReferenceInEveryLayout) {
  for (const std::int64_t batch : {1, 4})
    for (const std::int64_t channels : {3, 16, 20, 32, 64}) {
      SCOPED_TRACE(channels);
      expect_like_reference(
          backend(), graph_of({2, 5, 7}, {Conv2dLayer{channels, 3, 1, 1, {}}, kRelu, param(), LinearLayer{6, {}}}),
          batch);
    }
}

TEST_P(Lrn, MatchesReferenceForImagesAndVectors) {
  expect_like_reference(backend(), graph_of({7, 3, 3}, {param(), Conv2dLayer{16, 2, 1, 0, {}}, LinearLayer{6, {}}}), 3);
  expect_like_reference(backend(), graph_of({5, 1, 1}, {LinearLayer{19, {}}, param(), LinearLayer{6, {}}}), 3);
}

// alpha = 1 makes the neighbours matter; AlexNet's is the last.
TROUPE_OVER_BACKENDS_AND(Lrn, ::testing::Values(LrnLayer{5, 1.0, 0.75, 1}, LrnLayer{3, 2.0, 0.5, 2},
                                                LrnLayer{7, 1.0, 1.0, 1}, LrnLayer{5, 1.0, 1.0, 1},
                                                LrnLayer{9, 1.0, 0.75, 1}, LrnLayer{5, 5e-4, 0.75, 2}));

/// Division by the deviation of a few values amplifies earlier rounding.
constexpr double kNormalised = 2e-4;

class BatchNorm : public BackendTestOver<std::int64_t> {};  // channels

TEST_P(BatchNorm, MatchesReferenceBehindConvolutions) {
  const std::int64_t channels = param();
  for (const std::int64_t batch : {1, 2, 9}) {
    SCOPED_TRACE(batch);
    for (const auto& activation : {Layer{kRelu}, Layer{ActivationLayer{Activation::tanh}}, Layer{DropoutLayer{0.5}}})
      expect_like_reference(backend(),
                            graph_of({2, 5, 7}, {Conv2dLayer{channels, 3, 2, 1, {}, 1, false}, BatchNormLayer{},
                                                 activation, Conv2dLayer{channels, 2, 1, 0, {}, 1, false},
                                                 BatchNormLayer{0.1, 0.3}, LinearLayer{6, {}}}),
                            batch, nullptr, 1, kNormalised);
  }
}

TEST_P(BatchNorm, MatchesReferenceOnTwoThreads) {
  const std::int64_t channels = param();
  expect_like_reference(backend(),
                        graph_of({2, 6, 6}, {Conv2dLayer{channels, 3, 1, 0, {}}, BatchNormLayer{}, kRelu,
                                             PoolLayer{PoolKind::max, 2, 2, 0}, LinearLayer{6, {}}}),
                        5, nullptr, 2, kNormalised);
}

TEST_P(BatchNorm, MatchesReferenceForImagesAndVectors) {
  const std::int64_t channels = param();
  expect_like_reference(backend(),
                        graph_of({channels, 4, 3}, {BatchNormLayer{}, Conv2dLayer{8, 2, 1, 0, {}}, LinearLayer{6, {}}}),
                        3, nullptr, 1, kNormalised);
  expect_like_reference(
      backend(),
      graph_of({5, 1, 1}, {LinearLayer{channels, {}}, BatchNormLayer{}, kRelu, LinearLayer{channels, {}},
                           BatchNormLayer{}, ActivationLayer{Activation::sigmoid}, LinearLayer{6, {}}}),
      7, nullptr, 1, kNormalised);
}

TROUPE_OVER_BACKENDS_AND(BatchNorm, ::testing::Values<std::int64_t>(1, 3, 16, 20, 32, 50));

class RunningStatistics : public BackendTest {};
TROUPE_OVER_BACKENDS(RunningStatistics);

Graph normalised_net() {
  return graph_of({3, 6, 5}, {Conv2dLayer{20, 3, 1, 1, {}, 1, false}, BatchNormLayer{1e-5, 0.25}, kRelu,
                              LinearLayer{16, {}}, BatchNormLayer{}, LinearLayer{5, {}}});
}

TEST_P(RunningStatistics, StartAtZeroAndOneAndStayInEvaluation) {
  for (const bool training : {true, false}) {
    Model model(backend(), normalised_net(), {.batch = 4, .training = training});
    EXPECT_EQ(model.replica->statistics().size(), statistics_layout(model.graph).arena_floats());
    std::vector<float> want(20, 0.0f);
    want.resize(40, 1.0f);
    want.resize(56, 0.0f);
    want.resize(72, 1.0f);
    EXPECT_EQ(model.canonical_statistics(), want);
    ASSERT_TRUE(model.replica->evaluate(model.batch()));
    EXPECT_EQ(model.canonical_statistics(), want);
  }
  Model without(backend(), small_net(), {.batch = 4});
  EXPECT_TRUE(without.replica->statistics().empty());
}

class MovingStatistics : public BackendTest {};
TROUPE_OVER_BACKENDS(MovingStatistics);
TROUPE_OVER_PROGRAMS(MovingStatistics, torch_program());

// The images themselves are normalised, so their moments are short sums: m = 3 · 2 values per channel, momentum ¼.
TEST_P(MovingStatistics, MoveTowardsEveryBatch) {
  Model model(backend(), graph_of({2, 1, 2}, {BatchNormLayer{1e-5, 0.25}, LinearLayer{3, {}}}), {.batch = 3});
  double running[2][2] = {{0, 1}, {0, 1}};  // channel: mean, variance
  for (int step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < model.images.size(); ++i)
      model.images[i] = static_cast<float>(std::sin(static_cast<double>(i) + 3 * step) + step);
    for (std::size_t c = 0; c < 2; ++c) {
      double sum = 0;
      double squares = 0;
      for (std::size_t n = 0; n < 3; ++n)
        for (std::size_t w = 0; w < 2; ++w) {
          const double x = model.images[n * 4 + c * 2 + w];
          sum += x;
          squares += x * x;
        }
      running[c][0] = 0.75 * running[c][0] + 0.25 * sum / 6;
      running[c][1] = 0.75 * running[c][1] + 0.25 * (squares - sum * sum / 6) / 5;
    }
    (void)model.step();
    const auto got = model.canonical_statistics();
    for (std::size_t c = 0; c < 2; ++c) {
      EXPECT_NEAR(got[c], running[c][0], 1e-5) << "step " << step;
      EXPECT_NEAR(got[2 + c], running[c][1], 1e-5) << "step " << step;
    }
  }
}

TEST_P(MovingStatistics, EvaluationUsesThemAndWrittenOnes) {
  const Graph graph = normalised_net();
  Model training(backend(), graph, {.batch = 4});
  for (std::uint64_t lease = 0; lease < 5; ++lease) training.momentum_step(lease);
  Model evaluating(backend(), graph, {.batch = 4, .training = false});
  evaluating.replica->import_canonical(training.canonical_parameters());
  evaluating.replica->kernels().upload(evaluating.replica->statistics(),
                                       training.numbers(training.replica->statistics()));
  training.reference.set_parameters(training.canonical_parameters());
  const auto statistics = training.canonical_statistics();
  training.reference.statistics().assign(statistics.begin(), statistics.end());
  const auto want = training.reference.run(training.images, training.labels, {}, Normalise::by_running);
  for (Model* model : {&training, &evaluating}) {
    const bool program = model->replica->owns_optimizer();
    if (program && model == &training) continue;  // a program that trains does not evaluate
    const auto got = model->replica->evaluate(model->batch()).value();
    EXPECT_NEAR(got.loss, want.loss, 1e-5 * std::max(1.0, want.loss));
    if (program) continue;  // it keeps its outputs
    EXPECT_LT(relative_error(model->replica->outputs(), want.outputs), 2e-5);
  }
}

// A sample's output does not depend on the other samples of its batch, nor on the padding after it.
TEST_P(RunningStatistics, EvaluationLeavesPaddingSamplesOut) {
  Model model(backend(), normalised_net(), {.batch = 4});
  (void)model.step();
  Batch batch = model.batch();
  batch.count = 2;
  const auto before = model.replica->evaluate(batch).value();
  std::fill(model.images.begin() + 2 * 90, model.images.end(), 1e6f);
  const auto after = model.replica->evaluate(batch).value();
  EXPECT_EQ(before.loss, after.loss);
}

TEST_P(RunningStatistics, AreTheSameBitsEveryTimeAndZeroBetweenTensors) {
  Model first(backend(), normalised_net(), {.batch = 8});
  Model second(backend(), normalised_net(), {.batch = 8});
  for (std::uint64_t lease = 0; lease < 5; ++lease) {
    first.momentum_step(lease);
    second.momentum_step(lease);
    if (lease == 2) (void)second.replica->evaluate(second.batch());  // changes nothing
  }
  const auto statistics = first.numbers(first.replica->statistics());
  EXPECT_EQ(statistics, second.numbers(second.replica->statistics()));
  EXPECT_EQ(first.numbers(first.replica->parameters()), second.numbers(second.replica->parameters()));
  for (std::size_t i = 20; i < 32; ++i) EXPECT_EQ(statistics[i], 0.0f);  // the padding of bn1's mean
}

TEST_P(RunningStatistics, AFailedStepLeavesThemAlone) {
  Model model(backend(), normalised_net(), {.batch = 4});
  (void)model.step();
  const auto before = model.canonical_statistics();
  model.labels[1] = 99;
  EXPECT_FALSE(model.replica->step(model.batch(), {}));
  EXPECT_EQ(model.canonical_statistics(), before);
}

TEST_P(RunningStatistics, OneValuePerChannelHasNoVariance) {
  core::HostAllocator allocator;
  const auto compiled = backend().compile(normalised_net(), {.batch = 1, .arenas = &allocator});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, core::Errc::config);
  EXPECT_NE(compiled.error().message.find("layer bn2"), std::string::npos) << compiled.error().message;
  EXPECT_TRUE(backend().compile(normalised_net(), {.batch = 1, .arenas = &allocator, .training = false}));
}

}  // namespace
}  // namespace troupe::nn::testing
