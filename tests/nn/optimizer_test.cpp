#include "nn/optimizer.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

TrainConfig optimizer_config_of(const std::string& toml) {
  core::Schema schema;
  schema.add(train_table());
  const auto config = core::Config::parse(schema, "[train]\n" + toml, "test.toml", {});
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->get(train_table()) : TrainConfig{};
}

/// The learning rate at the given epochs of a run of 10 epochs.
std::vector<double> rates(const std::string& toml, const std::vector<double>& epochs, int workers = 1) {
  const TrainConfig config = optimizer_config_of(toml);
  std::vector<double> result;
  result.reserve(epochs.size());
  for (const double epoch : epochs) result.push_back(learning_rate(config, epoch, 10, workers));
  return result;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-15) << i;
}

TEST(Optimizer, ConstantRateStaysConstant) {
  expect_near(rates("lr = 0.5", {0, 3.7, 9.99}), {0.5, 0.5, 0.5});
  expect_near(rates("lr = 0.5\nscale_lr = true", {0, 5}, 4), {2, 2});
  expect_near(rates("lr = 0.5", {0, 5}, 4), {0.5, 0.5});
}

TEST(Optimizer, StepsFallAtWholeMultiples) {
  expect_near(rates("lr = 1\nlr_policy = \"step\"\nlr_step = 3\nlr_gamma = 0.5", {0, 2.999, 3, 5.9, 6, 9}),
              {1, 1, 0.5, 0.5, 0.25, 0.125});
  expect_near(rates("lr = 1\nlr_policy = \"step\"\nlr_step = 0.5\nlr_gamma = 0.1", {0.4, 0.5, 1.2}), {1, 0.1, 0.01});
}

TEST(Optimizer, PolynomialReachesZeroAtTheEnd) {
  expect_near(rates("lr = 0.2\nlr_policy = \"polynomial\"", {0, 2.5, 5, 10, 11}), {0.2, 0.15, 0.1, 0, 0});
  expect_near(rates("lr = 0.2\nlr_policy = \"polynomial\"\nlr_power = 2", {0, 5, 7.5}), {0.2, 0.05, 0.0125});
}

// ½ (1 + cos(π t / 10)); cos(π / 4) = 0.70710678…
TEST(Optimizer, CosineFallsFromTheRateToZero) {
  expect_near(rates("lr = 0.2\nlr_policy = \"cosine\"", {0, 2.5, 5, 7.5, 10, 11}),
              {0.2, 0.1 * (1 + 0.7071067811865476), 0.1, 0.1 * (1 - 0.7071067811865476), 0, 0});
  // With a warm-up both factors apply.
  expect_near(rates("lr = 0.2\nlr_policy = \"cosine\"\nwarmup_epochs = 10", {5}, 2), {0.075});
}

TEST(Optimizer, OnlySomePoliciesDependOnTheRunsLength) {
  EXPECT_FALSE(depends_on_length(optimizer_config_of("lr = 1")));
  EXPECT_FALSE(depends_on_length(optimizer_config_of("lr = 1\nlr_policy = \"step\"")));
  EXPECT_TRUE(depends_on_length(optimizer_config_of("lr = 1\nlr_policy = \"polynomial\"")));
  EXPECT_TRUE(depends_on_length(optimizer_config_of("lr = 1\nlr_policy = \"cosine\"")));
}

TEST(Optimizer, WarmUpGrowsFromOneNth) {
  // d = 4 workers: 1/4 + 3/4 · t/2 for t < 2.
  expect_near(rates("lr = 0.8\nwarmup_epochs = 2", {0, 1, 1.5, 2, 5}, 4), {0.2, 0.5, 0.65, 0.8, 0.8});
  expect_near(rates("lr = 0.8\nwarmup_epochs = 2", {0, 1}, 1), {0.8, 0.8});  // one worker: no warm-up
  expect_near(rates("lr = 0.8\nwarmup_epochs = 2\nwarmup_from = 8", {0, 1}, 4), {0.1, 0.45});
  // Multiplied by N after a warm-up that starts at the single worker's rate (Goyal et al. 2017).
  expect_near(rates("lr = 0.1\nwarmup_epochs = 2\nscale_lr = true", {0, 1, 2}, 4), {0.1, 0.25, 0.4});
  // With a policy both factors apply: 0.75 · (1 − 0.1).
  expect_near(rates("lr = 1\nlr_policy = \"polynomial\"\nwarmup_epochs = 2", {1}, 2), {0.675});
}

TEST(Optimizer, StepTakesRateMomentumAndDecayFromTheConfig) {
  const auto step = [](const std::string& toml) {
    return optimizer_step(optimizer_config_of("lr = 0.5\nmomentum = 0.75\nweight_decay = 0.25\n" + toml), 5, 10, 1);
  };
  const auto momentum = step("lr_policy = \"polynomial\"");
  EXPECT_EQ(momentum.kind, core::OptimizerKind::momentum);
  EXPECT_EQ(momentum.lr, 0.25f);
  EXPECT_EQ(momentum.momentum, 0.75f);
  EXPECT_EQ(momentum.weight_decay, 0.25f);
  EXPECT_EQ(step("optimizer = \"nesterov\"").kind, core::OptimizerKind::nesterov);
  EXPECT_EQ(step("optimizer = \"nesterov\"").momentum, 0.75f);
  EXPECT_EQ(step("optimizer = \"sgd\"").kind, core::OptimizerKind::sgd);
  EXPECT_EQ(step("optimizer = \"sgd\"").momentum, 0.0f);
}

TEST(Optimizer, EveryOptimizerOfTheTableCanBeChosen) {
  for (const auto& row : core::kOptimizers) {
    const std::string name(row.variant ? "rmsprop" : row.name);
    const auto config = optimizer_config_of("momentum = 0.75\noptimizer = \"" + name + "\"" +
                                            (row.variant ? "\nrmsprop_epsilon = \"inside\"" : ""));
    EXPECT_EQ(optimizer_kind(config), row.kind);
    EXPECT_EQ(optimizer_step(config, 0, 1, 1).kind, row.kind);
    EXPECT_EQ(optimizer_step(config, 0, 1, 1).momentum, row.momentum ? 0.75f : 0.0f) << row.name;
  }
}

/// Such a name was once taken for momentum.
TEST(Optimizer, AnUnknownNameIsNoOptimizer) {
  TrainConfig config;
  config.optimizer = "lion";
  EXPECT_THROW((void)optimizer_kind(config), std::invalid_argument);
  EXPECT_THROW((void)optimizer_step(config, 0, 1, 1), std::invalid_argument);
}

/// The help names the optimizers that read an option, from the table.
TEST(Optimizer, HelpNamesTheOptimizersThatReadAnOption) {
  core::Schema schema;
  schema.add(train_table());
  const auto help = [&](const char* key) { return schema.find(key, "")->help; };
  EXPECT_EQ(help("train.momentum"), "share of the velocity kept per step (momentum, nesterov); beta1 of adam, adamw");
  EXPECT_EQ(help("train.beta2"),
            "share of the mean of squared gradients kept per step (rmsprop, adam, adamw, adadelta)");
  EXPECT_EQ(help("train.epsilon"), "added to the root of squared gradients (rmsprop, adagrad, adam, adamw, adadelta)");
}

TEST(Optimizer, StepsOfAScheduleByHand) {
  // x = 1, g = 0.5 at every step, μ = 0.5, λ = 0.5, lr falls linearly over 4 epochs of one step: 0.4, 0.3, 0.2, 0.1.
  //   t  g' = g + λx   v = μv − lr g'   x = x + v
  //   0  1             −0.4             0.6
  //   1  0.8           −0.44            0.16
  //   2  0.58          −0.336           −0.176
  //   3  0.412         −0.2092          −0.3852
  const auto config = optimizer_config_of("lr = 0.4\nmomentum = 0.5\nweight_decay = 0.5\nlr_policy = \"polynomial\"");
  alignas(core::kAlignment) float x[1] = {1};
  alignas(core::kAlignment) float v[1] = {0};
  alignas(core::kAlignment) const float g[1] = {0.5f};
  const float expected[4] = {0.6f, 0.16f, -0.176f, -0.3852f};
  for (int t = 0; t < 4; ++t) {
    core::reference_kernels().optimize(x, g, core::Span(v), optimizer_step(config, t, 4, 1));
    EXPECT_NEAR(x[0], expected[t], 1e-6) << t;
  }
}

TEST(Optimizer, ValuesOutOfRangeAreConfigErrors) {
  core::Schema schema;
  schema.add(train_table());
  for (const char* bad :
       {"lr = -1", "momentum = 1.5", "weight_decay = -1", "optimizer = \"lion\"", "lr_policy = \"linear\"",
        "lr_step = 0", "lr_gamma = 0", "lr_power = 0", "warmup_epochs = -1", "warmup_from = -2"}) {
    const auto config = core::Config::parse(schema, std::string("[train]\n") + bad, "test.toml", {});
    ASSERT_FALSE(config) << bad;
    EXPECT_EQ(config.error().code, core::Errc::config) << bad;
  }
}

}  // namespace
}  // namespace troupe::nn
