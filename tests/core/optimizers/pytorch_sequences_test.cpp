// Six steps of each optimizer against PyTorch's numbers (pytorch_sequences.py): every formula with weight decay, ε and bias correction.
#include "tests/core/optimizers/pytorch_sequences.hpp"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/kernels_host.hpp"

namespace troupe::core {
namespace {

struct GoldenCase {
  const char* name;
  OptimizerStep step;
  const Sequence& expected;
};

constexpr float kDecay = 0.1F;

TEST(PytorchSequences, EveryStepIsPytorchs) {
  const GoldenCase cases[] = {
      {"adam", {OptimizerKind::adam, 0.05F, 0.8F, kDecay, 0.95F, 1e-3F}, kAdam},
      {"adamw", {OptimizerKind::adamw, 0.05F, 0.8F, kDecay, 0.95F, 1e-3F}, kAdamW},
      {"adadelta", {OptimizerKind::adadelta, 0.7F, 0, kDecay, 0.8F, 1e-3F}, kAdadelta},
      {"rmsprop", {OptimizerKind::rmsprop, 0.05F, 0, kDecay, 0.8F, 0.3F}, kRmsprop},
      {"rmsprop_inside", {OptimizerKind::rmsprop_inside, 0.05F, 0, kDecay, 0.8F, 0.3F}, kRmspropInside},
  };
  for (const auto& variant : host_variants()) {
    for (const auto& golden : cases) {
      alignas(kAlignment) float x[4] = {1, -2, 0.5F, 0};
      alignas(kAlignment) float first[4] = {};
      alignas(kAlignment) float second[4] = {};
      auto step = golden.step;
      for (std::size_t t = 0; t < golden.expected.size(); ++t) {
        alignas(kAlignment) float g[4];
        for (std::size_t i = 0; i < 4; ++i) g[i] = static_cast<float>(kGradients[t][i]);
        step.t = t + 1;
        variant.kernels->optimize(x, g, {first, second}, step);
        for (std::size_t i = 0; i < 4; ++i)
          EXPECT_NEAR(x[i], golden.expected[t][i], 2e-6) << golden.name << ", " << variant.name << ", step " << t;
      }
    }
  }
}

/// The two places of ε give other numbers: the option is no decoration.
TEST(PytorchSequences, EpsilonInsideTheRootIsAnotherRule) {
  EXPECT_GT(std::abs(kRmsprop[0][0] - kRmspropInside[0][0]), 1e-3);
  EXPECT_EQ(with_epsilon(optimizer_info("rmsprop"), true), OptimizerKind::rmsprop_inside);
  EXPECT_EQ(with_epsilon(optimizer_info("rmsprop"), false), OptimizerKind::rmsprop);
  for (const auto& name : optimizer_names()) {
    if (name == "rmsprop") continue;
    EXPECT_EQ(with_epsilon(optimizer_info(name), true), optimizer_info(name).kind) << name;
  }
  EXPECT_THROW((void)optimizer_info("rmsprop_inside"), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::core
