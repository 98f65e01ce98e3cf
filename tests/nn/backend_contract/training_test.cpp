// Optimizer steps, versions, evaluation of short batches, outputs, and misuse.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "nn/arenas/host_view.hpp"
#include "nn/initialise.hpp"
#include "nn/zoo/models.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

class ReplicaTraining : public BackendTest {};
TROUPE_OVER_BACKENDS(ReplicaTraining);

TEST_P(ReplicaTraining, ApplyIsTheOptimizersRule) {
  Model model(backend(), small_net(), {.batch = 4});
  (void)model.step();
  const auto x = model.canonical_parameters();
  const auto g = model.canonical_gradients();
  const auto version = model.replica->parameters_version();
  model.replica->apply({core::OptimizerKind::sgd, 0.5f, 0, 0.1f}, {});
  EXPECT_GT(model.replica->parameters_version(), version);
  const auto after = model.canonical_parameters();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(after[i], x[i] - 0.5f * (g[i] + 0.1f * x[i]));
}

TEST_P(ReplicaTraining, ApplyClipsTheGradientFirst) {
  Model model(backend(), small_net(), {.batch = 8});
  (void)model.step();
  const auto before = model.canonical_parameters();
  const auto g = model.canonical_gradients();
  double norm = 0;
  for (const float value : g) norm += double{value} * value;
  norm = std::sqrt(norm);
  const auto limit = static_cast<float>(norm / 4);
  model.replica->apply({.lr = 0.5f, .clip_norm = limit}, {});
  const auto after = model.canonical_parameters();
  for (std::size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(after[i], before[i] - 0.5 * g[i] / 4, 1e-6);
}

// A run that diverges is seen by its loss: no relu, fused with another layer or not, and no pooling makes a number of what is none.
// On the CPU oneDNN's relu makes 0 of NaN; there the check of the parameters sees it (actors/worker/worker_accounts.cpp).
TEST_P(ReplicaTraining, ANumberThatIsNoneReachesTheLoss) {
  if (backend().name() == "cpu" || backend().name() == "cpu_canonical") return;
  const Graph graph =
      graph_of({3, 8, 8}, {Conv2dLayer{8, 3, 1, 1, {}}, ActivationLayer{}, PoolLayer{PoolKind::max, 2, 2},
                           Conv2dLayer{8, 3, 1, 1, {}, 1, false}, BatchNormLayer{}, ActivationLayer{},
                           LinearLayer{12, {}}, ActivationLayer{}, LinearLayer{10, {}}});
  Model model(backend(), graph, {.batch = 4});
  const auto good = model.canonical_parameters();
  ASSERT_TRUE(std::isfinite(model.step().loss));
  std::size_t offset = 0;
  for (const Parameter& parameter : graph.parameters()) {
    auto bad = good;
    bad[offset] = std::numeric_limits<float>::quiet_NaN();
    model.replica->import_canonical(bad);
    EXPECT_TRUE(std::isnan(model.step().loss)) << parameter.name;
    EXPECT_TRUE(std::isnan(model.replica->outputs()[0])) << parameter.name;
    offset += static_cast<std::size_t>(parameter.size());
  }
}

TEST_P(ReplicaTraining, LowersTheLoss) {
  Model model(backend(), lenet(), {.batch = 16});
  const double before = model.step().loss;
  for (int i = 0; i < 20; ++i) model.momentum_step();
  EXPECT_LT(model.step().loss, 0.5 * before);
}

// The model cifar as in training: He's weights, dropout, changing leases. 40 steps over ten batches of 8 noisy images of 4 classes.
TEST_P(ReplicaTraining, CifarLearns) {
  ModelConfig config;
  config.name = "cifar";
  const auto graph = build_model(config, {3, 28, 28}, 10).value();
  Model model(backend(), graph, {.batch = 8});
  std::vector<float> start(model.replica->layout()->canonical_floats());
  initialise(graph, 1, start);
  model.replica->import_canonical(start);
  const auto patterns = random_floats(4 * 2352, 1.0, 60);
  double first = 0;
  double last = 0;
  for (std::uint64_t lease = 0; lease < 40; ++lease) {
    const auto noise = random_floats(8 * 2352, 0.5, 70 + lease % 10);
    for (std::size_t i = 0; i < noise.size(); ++i) model.images[i] = patterns[i % patterns.size()] + noise[i];
    for (std::size_t n = 0; n < 8; ++n) model.labels[n] = static_cast<std::int32_t>(n % 4);
    const double loss = model.step(lease).loss;
    (lease < 5 ? first : last) += lease < 5 || lease >= 35 ? loss / 5 : 0;
    model.replica->apply({core::OptimizerKind::momentum, 0.01f, 0.9f, 0}, model.velocity.view());
  }
  EXPECT_GT(first, 1.0);
  EXPECT_LT(last, 0.2 * first);
}

class WrittenParameters : public BackendTest {};
TROUPE_OVER_BACKENDS(WrittenParameters);
TROUPE_OVER_PROGRAMS(WrittenParameters, numpy_program(), torch_program());

// A backend may keep working copies, as of LeNet's convolutions: until parameters_written(), it may compute with the old ones.
TEST_P(WrittenParameters, AreUsedAfterParametersWritten) {
  Model model(backend(), lenet(), {.batch = 4});
  Model other(backend(), lenet(), {.batch = 4});
  auto changed = model.canonical_parameters();
  for (float& x : changed) x *= 0.5f;
  (void)model.step();
  (void)other.step();

  write_canonical(model.replica->kernels(), *model.replica->layout(), changed, model.replica->parameters());
  const auto version = model.replica->parameters_version();
  model.replica->parameters_written();
  EXPECT_GT(model.replica->parameters_version(), version);
  other.replica->import_canonical(changed);
  EXPECT_EQ(model.step().loss, other.step().loss);
  EXPECT_EQ(model.canonical_gradients(), other.canonical_gradients());

  model.reference.set_parameters(changed);
  const auto want = model.reference.run(model.images, model.labels);
  const std::vector<float> gradients = model.canonical_gradients();
  EXPECT_LT(relative_error(gradients, want.gradients), kTolerance);
  if (!model.replica->owns_optimizer()) {  // a program keeps its outputs
    EXPECT_LT(relative_error(model.replica->outputs(), want.outputs), 2e-5);
  }
}

TEST_P(ReplicaTraining, EvaluateLeavesPaddingSamplesOut) {
  Model model(backend(), lenet(), {.batch = 8});
  const auto want = model.reference.run(std::span<const float>(model.images).first(3 * 784),
                                        std::span<const std::int32_t>(model.labels).first(3));
  Batch batch = model.batch();
  batch.count = 3;
  auto got = model.replica->evaluate(batch).value();
  EXPECT_EQ(got.samples, 3);
  EXPECT_EQ(got.top1, want.top1);
  EXPECT_EQ(got.top5, want.top5);
  EXPECT_NEAR(got.loss, want.loss, 1e-5);
  EXPECT_EQ(model.replica->outputs().size(), 80u);

  // The contents of the padding do not matter, not even an invalid label.
  std::fill(model.images.begin() + 3 * 784, model.images.end(), 0.0f);
  std::fill(model.labels.begin() + 3, model.labels.end(), -1);
  batch = model.batch();
  batch.count = 3;
  EXPECT_EQ(model.replica->evaluate(batch).value().loss, got.loss);
}

TEST_P(ReplicaTraining, EvaluateEqualsTheForwardOfAStep) {
  Model training(backend(), lenet(), {.batch = 4});
  Model evaluating(backend(), lenet(), {.batch = 4, .training = false});
  const StepResult step = training.step();
  const auto gradients = training.canonical_gradients();
  for (Model* model : {&training, &evaluating}) {
    const auto result = model->replica->evaluate(model->batch()).value();
    EXPECT_NEAR(result.loss, step.loss, 1e-6);
    EXPECT_EQ(result.top1, step.top1);
  }
  EXPECT_EQ(training.canonical_gradients(), gradients);  // unchanged
}

TEST_P(ReplicaTraining, BadLabelsAreDataErrors) {
  Model model(backend(), small_net(), {.batch = 4});
  model.labels[2] = 5;
  const auto result = model.replica->step(model.batch(), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, core::Errc::data);
  EXPECT_NE(result.error().message.find("sample 2"), std::string::npos);
}

TEST_P(ReplicaTraining, WrongSizesAndStepsWithoutTrainingAreBugs) {
  Model evaluating(backend(), small_net(), {.batch = 4, .training = false});
  EXPECT_THROW((void)evaluating.replica->step(evaluating.batch(), {}), std::logic_error);
  Model model(backend(), small_net(), {.batch = 4});
  Batch batch = model.batch();
  batch.images = batch.images.first(batch.images.size() - 1);
  EXPECT_THROW((void)model.replica->step(batch, {}), std::logic_error);
  batch = model.batch();
  batch.count = 5;
  EXPECT_THROW((void)model.replica->evaluate(batch), std::logic_error);
}

}  // namespace
}  // namespace troupe::nn::testing
