// How replicas that are user programs differ: the optimizer is the program's; the strategy gives a factor on its rate and, if it exchanges
// gradients, the combined gradients. Buckets, layouts, running statistics and gradients of programs are tested beside those of the other backends.
#include "tests/nn/backend_contract/programs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "cpu/backend.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

class Programs : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(, Programs, ::testing::Values(numpy_program(), torch_program()), name_of_backend);

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  const std::vector<double> wide(expected.begin(), expected.end());
  EXPECT_LT(relative_error(found, wide), kTolerance);
}

// The same numbers as gradient descent on the CPU's backend, and the same bits each time.
TEST_P(Programs, TrainAsTheCpuDoes) {
  const auto cpu = cpu::make_backend();
  Model model(backend(), small_net(), {.batch = 6});
  Model again(backend(), small_net(), {.batch = 6});
  Model reference(*cpu, small_net(), {.batch = 6});
  EXPECT_TRUE(model.replica->owns_optimizer());
  EXPECT_TRUE(model.replica->outputs().empty());
  EXPECT_EQ(model.replica->layout_fingerprint(), plain_layout(model.graph).fingerprint());
  for (std::uint64_t lease = 0; lease < 4; ++lease) {
    const float factor = lease == 0 ? 1.0f : 0.5f;
    for (Model* each : {&model, &again, &reference})
      each->images = random_floats(each->images.size(), 1.0, 300 + lease);
    const auto result = model.step(lease);
    EXPECT_NEAR(result.loss, reference.step(lease).loss, 1e-5);
    EXPECT_EQ(result.samples, 6);
    expect_near(model.canonical_gradients(), reference.canonical_gradients());
    const auto version = model.replica->parameters_version();
    model.replica->apply({.lr = factor}, {});
    EXPECT_GT(model.replica->parameters_version(), version);
    reference.replica->apply({.lr = kProgramRate * factor}, {});
    expect_near(model.canonical_parameters(), reference.canonical_parameters());
    EXPECT_EQ(again.step(lease).loss, result.loss);
    again.replica->apply({.lr = factor}, {});
  }
  EXPECT_EQ(again.canonical_parameters(), model.canonical_parameters());
}

TEST_P(Programs, StepWithTheGradientsThatAStrategyLeaves) {
  Model model(backend(), small_net(), {.batch = 4});
  (void)model.step();
  const auto x = model.canonical_parameters();
  for (float& gradient : model.replica->gradients()) gradient *= -2;
  const auto g = model.canonical_gradients();
  model.replica->apply({.lr = 0.25f}, {});
  const auto after = model.canonical_parameters();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(after[i], x[i] - 0.25f * kProgramRate * g[i], 1e-6) << i;
}

// Where nothing reads the gradients the program keeps them, and steps before it reports the loss.
TEST_P(Programs, StepByThemselvesWhereNothingReadsTheGradients) {
  const auto cpu = cpu::make_backend();
  Model reference(*cpu, small_net(), {.batch = 4});
  Model model(backend(), small_net(), {.batch = 4, .gradients = false});
  EXPECT_TRUE(model.replica->gradients().empty());
  Batch batch = model.batch();
  batch.lr = 0.5;
  std::vector<int> buckets;
  const auto result = model.replica->step(batch, [&](int bucket) { buckets.push_back(bucket); });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NEAR(result->loss, reference.step().loss, 1e-5);
  EXPECT_EQ(buckets.size(), model.replica->buckets().size());
  reference.replica->apply({.lr = 0.5f * kProgramRate}, {});
  const auto stepped = model.canonical_parameters();
  expect_near(stepped, reference.canonical_parameters());
  model.replica->apply({.lr = 0.5f}, {});
  EXPECT_EQ(model.canonical_parameters(), stepped);
}

TEST_P(Programs, EvaluateTheParametersInTheirVectors) {
  Model model(backend(), small_net(), {.batch = 8, .training = false});
  EXPECT_TRUE(model.replica->gradients().empty());
  EXPECT_TRUE(model.replica->buckets().empty());
  for (const float scale : {1.0f, 0.5f}) {
    auto parameters = model.canonical_parameters();
    for (float& value : parameters) value *= scale;
    model.replica->import_canonical(parameters);
    model.reference.set_parameters(parameters);
    const auto want = model.reference.run(model.images, model.labels);
    const auto found = model.replica->evaluate(model.batch());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_NEAR(found->loss, want.loss, 1e-5);
    EXPECT_EQ(found->samples, 8);
    EXPECT_EQ(found->top1, want.top1);
    EXPECT_EQ(found->top5, want.top5);
  }
  auto parameters = model.canonical_parameters();
  parameters.back() = std::numeric_limits<float>::quiet_NaN();
  model.replica->import_canonical(parameters);
  const auto found = model.replica->evaluate(model.batch());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(std::isnan(found->loss));
}

TEST_P(Programs, ThatFailAreErrorsWithTheirLastLines) {
  Model model(backend(), small_net(), {.batch = 4});
  ASSERT_TRUE(model.replica->step(model.batch(), {}));
  const auto parameters = model.canonical_parameters();
  model.labels[2] = 99;
  const auto failed = model.replica->step(model.batch(), {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, core::Errc::program);
  EXPECT_NE(failed.error().message.find("the program has failed: IndexError: "), std::string::npos)
      << failed.error().message;
  EXPECT_FALSE(model.replica->step(model.batch(), {}));
  EXPECT_EQ(model.canonical_parameters(), parameters);
}

// A program without an optimizer for the engine: it moves its parameters before run.step.
TEST_P(Programs, WithoutAnOptimizerHaveTheirRateAlone) {
  const auto kind = GetParam().name == numpy_program().name ? "numpy" : "torch";
  const auto alone = make_program_backend("alone", kind, {"alone"});
  const auto cpu = cpu::make_backend();
  Model reference(*cpu, small_net(), {.batch = 4});
  Model model(*alone, small_net(), {.batch = 4, .gradients = false});
  EXPECT_NEAR(model.step().loss, reference.step().loss, 1e-5);
  reference.replica->apply({.lr = kProgramRate}, {});
  model.replica->apply({.lr = 1}, {});
  expect_near(model.canonical_parameters(), reference.canonical_parameters());
  Batch batch = model.batch();
  batch.lr = 0.5;
  const auto scaled = model.replica->step(batch, {});
  ASSERT_FALSE(scaled);
  EXPECT_NE(scaled.error().message.find("scales the learning rate by 0.5"), std::string::npos)
      << scaled.error().message;
}

}  // namespace
}  // namespace troupe::nn::testing
