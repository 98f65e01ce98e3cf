/// The definition of what a Graph computes: forward, loss and backward in plain loops and double precision.
/// Backends are tested against it; reference_model_test.cpp tests it against finite differences. Slow. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "nn/graph.hpp"

namespace troupe::nn {

/// The results of one batch. Gradients are means over the batch, like the loss.
struct ReferenceResult {
  double loss = 0;
  std::int64_t top1 = 0;                         // samples whose label has rank 0 (reference_rank)
  std::int64_t top5 = 0;                         // rank < 5; 0 for models with fewer than five classes
  std::vector<double> outputs;                   // [batch, outputs]
  std::vector<double> gradients;                 // canonical vector
  std::vector<double> input_gradient;            // [batch, channels, height, width]
  std::vector<std::vector<double>> activations;  // of each node: [batch, node output]
  std::vector<double> statistics;                // running values after training on this batch; canonical
};

/// The mean and variance of batch normalisation: the batch's (training) or the running ones (evaluation).
enum class Normalise : std::uint8_t { by_batch, by_running };

/// A label's rank: the number of classes with a greater output, or an equal one and a lower index.
[[nodiscard]] std::int64_t reference_rank(std::span<const double> outputs, std::int64_t label);

class ReferenceModel {
 public:
  explicit ReferenceModel(Graph graph);

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] std::vector<double>& parameters() noexcept { return parameters_; }  ///< canonical vector
  void set_parameters(std::span<const float> canonical) { parameters_.assign(canonical.begin(), canonical.end()); }
  [[nodiscard]] std::vector<double>& statistics() noexcept {
    return statistics_;
  }  ///< canonical vector; run() reads it

  /// Masks by dropout node, [batch, node output], with values 0 or 1 / (1 − rate); a node without a mask passes its input on, as
  /// in evaluation. `images` [batch, channels, height, width], batch = labels.size().
  using Masks = std::map<int, std::vector<double>>;
  [[nodiscard]] ReferenceResult run(std::span<const double> images, std::span<const std::int32_t> labels,
                                    const Masks& masks = {}, Normalise normalise = Normalise::by_batch) const;
  [[nodiscard]] ReferenceResult run(std::span<const float> images, std::span<const std::int32_t> labels,
                                    const Masks& masks = {}, Normalise normalise = Normalise::by_batch) const;

  /// The masks that a backend uses for this batch (nn/dropout.hpp).
  [[nodiscard]] Masks dropout_masks(std::uint64_t seed, std::uint64_t lease, std::int64_t batch) const;

 private:
  Graph graph_;
  std::vector<double> parameters_;
  std::vector<double> statistics_;
};

}  // namespace troupe::nn
