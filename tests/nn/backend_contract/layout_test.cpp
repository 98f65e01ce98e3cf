// Arenas: layout round trips, padding, and the properties of a backend's layouts that must hold during training.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

/// Marks the arena positions of canonical elements by a round trip of ones; all other positions are padding.
std::vector<float> occupied(const Layout& layout) {
  std::vector<float> canonical(layout.canonical_floats(), 1.0f);
  std::vector<float> arena(layout.arena_floats());
  layout.from_canonical(canonical, arena);
  return arena;
}

double padding_sum(const Layout& layout, std::span<const float> arena) {
  const auto mask = occupied(layout);
  double sum = 0;
  for (std::size_t i = 0; i < arena.size(); ++i)
    if (mask[i] == 0) sum += std::abs(static_cast<double>(arena[i]));
  return sum;
}

class Layouts : public BackendTestOver<int> {
 protected:
  [[nodiscard]] static Graph graph() {
    if (param() == 0) return lenet();
    if (param() == 1) return small_net();
    if (param() == 3)
      return graph_of({3, 14, 14}, {Conv2dLayer{16, 3, 1, 0, {}}, ActivationLayer{Activation::relu},
                                    PoolLayer{PoolKind::max, 2, 2, 0}, Conv2dLayer{32, 3, 1, 0, {}},
                                    PoolLayer{PoolKind::max, 2, 2, 0}, LinearLayer{5, {}}});
    return graph_of({3, 7, 7}, {Conv2dLayer{32, 3, 1, 0, {}, 1, false}, BatchNormLayer{},
                                Conv2dLayer{64, 3, 1, 1, {}, 2}, LinearLayer{5, {}}});
  }
};

TEST_P(Layouts, ValuesRoundTripThroughEveryLayout) {
  Model model(backend(), graph(), {.batch = 4});
  const auto& layout = *model.replica->layout();
  const auto canonical = random_floats(layout.canonical_floats(), 1.0, 50);
  model.replica->import_canonical(canonical);
  EXPECT_EQ(model.canonical_parameters(), canonical);
  EXPECT_EQ(padding_sum(layout, model.numbers(model.replica->parameters())), 0.0);
  const auto mask = occupied(layout);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(mask, 1.0f)),
            canonical.size());  // no two elements share a position
}

TEST_P(Layouts, PaddingStaysZeroInTraining) {
  Model model(backend(), graph(), {.batch = 4});
  for (std::uint64_t lease = 0; lease < 20; ++lease) {
    model.momentum_step(lease);
    ASSERT_EQ(padding_sum(*model.replica->layout(), model.numbers(model.replica->gradients())), 0.0)
        << "after step " << lease;
  }
  EXPECT_EQ(padding_sum(*model.replica->layout(), model.numbers(model.replica->parameters())), 0.0);
  EXPECT_EQ(padding_sum(*model.replica->layout(), model.numbers(model.velocity.view())), 0.0);
}

TEST_P(Layouts, TensorsAreTheGraphsParameters) {
  Model model(backend(), graph(), {.batch = 4});
  const auto& tensors = model.replica->layout()->tensors();
  ASSERT_EQ(tensors.size(), model.graph.parameters().size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].name, model.graph.parameters()[i].name);
    EXPECT_EQ(tensors[i].shape, model.graph.parameters()[i].shape);
    EXPECT_EQ(tensors[i].offset % static_cast<std::int64_t>(core::kAlignmentFloats), 0);
  }
  EXPECT_EQ(model.replica->parameters().size(), model.replica->layout()->arena_floats());
  EXPECT_EQ(model.replica->gradients().size(), model.replica->layout()->arena_floats());
}

TEST_P(Layouts, EvaluatorsShareTheLayout) {
  Model training(backend(), graph(), {.batch = 4});
  Model evaluating(backend(), graph(), {.batch = 4, .training = false});
  EXPECT_EQ(training.replica->layout_fingerprint(), evaluating.replica->layout_fingerprint());
  EXPECT_TRUE(evaluating.replica->gradients().empty());
  EXPECT_TRUE(evaluating.replica->buckets().empty());
  if (!training.replica->owns_optimizer()) {  // a program's memory is its own
    EXPECT_LT(evaluating.replica->workspace_bytes(), training.replica->workspace_bytes());
  }
}

TROUPE_OVER_BACKENDS_AND(Layouts, ::testing::Values(0, 1, 2, 3));
TROUPE_OVER_PROGRAM_AND(Numpy, Layouts, numpy_program(), ::testing::Values(1));

}  // namespace
}  // namespace troupe::nn::testing
