/// A compiled model and its double-precision reference, with random parameters and one random batch. For tests.
#pragma once

#include <memory>
#include <vector>

#include "nn/backend.hpp"
#include "nn/graph.hpp"
#include "tests/nn/reference_model.hpp"

namespace troupe::nn::testing {

/// Throws with the error's message when the layers do not fit together.
[[nodiscard]] Graph graph_of(Shape input, const std::vector<Layer>& layers, Loss loss = Loss::softmax_cross_entropy);
/// The same for nodes that branch.
[[nodiscard]] Graph graph_of_nodes(Shape input, const std::vector<NodeSpec>& nodes,
                                   const std::vector<AuxiliaryLoss>& auxiliary = {});
/// 20-50-500-10 on 1x28x28; and a smaller net with padding, stride, average pooling, all activations.
[[nodiscard]] Graph lenet();
[[nodiscard]] Graph small_net();

[[nodiscard]] std::vector<float> random_floats(std::size_t count, double deviation, std::uint64_t index);
[[nodiscard]] std::vector<std::int32_t> random_labels(std::int64_t count, std::int64_t classes, std::uint64_t index);

/// max |a − b| / max(max |b|, 1e-3): the error relative to the tensor's scale.
[[nodiscard]] double relative_error(std::span<const float> a, std::span<const double> b);

struct Model {
  /// In the backend's own arenas. Throws with the error's message when it cannot be compiled. `backend` outlives the model.
  Model(Backend& backend, Graph graph, CompileOptions options);

  [[nodiscard]] Batch batch(std::uint64_t lease = 0) const;
  [[nodiscard]] StepResult step(std::uint64_t lease = 0);
  void momentum_step(std::uint64_t lease = 0);
  /// A vector of the arenas' memory, as the host reads it.
  [[nodiscard]] std::vector<float> numbers(core::ConstSpan vector) const;
  [[nodiscard]] std::vector<float> canonical_parameters();
  [[nodiscard]] std::vector<float> canonical_gradients();
  [[nodiscard]] std::vector<float> canonical_statistics();

  Graph graph;
  core::Buffer velocity;  // of the arenas' memory; outlives the replica, which may still use it
  std::unique_ptr<Replica> replica;
  ReferenceModel reference;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};

/// For float32 sums of up to a few thousand terms, and approximations of exp and tanh.
constexpr double kTolerance = 2e-5;

/// Compares one step with the reference: loss, hits, outputs, all gradients, running statistics. Reports through GoogleTest.
void expect_like_reference(Backend& backend, const Graph& graph, std::int64_t batch, const Plan* plan = nullptr,
                           int threads = 1, double tolerance = kTolerance);

}  // namespace troupe::nn::testing
