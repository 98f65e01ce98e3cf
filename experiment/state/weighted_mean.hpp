/// Σ a_i x_i / Σ a_i over vectors added one by one: the model of strategies whose workers have shares of it. Sums in the order of add(), so
/// equal calls give equal bits. One thread.
#pragma once

#include <span>
#include <vector>

#include "core/kernels.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {

class WeightedMean {
 public:
  /// All vectors have the length of the first; `weight` ≥ 0.
  void add(core::ConstSpan vector, double weight);
  /// Writes the mean. REQUIRES a weight above 0.
  void take(core::Span mean) const;
  [[nodiscard]] double weight() const noexcept { return weight_; }

 private:
  std::vector<double> sum_;
  double weight_ = 0;
};

/// The statistics for an evaluation: the mean over the workers, in rank order. `workers`: in the arenas' layout; the result is canonical.
[[nodiscard]] std::vector<float> mean_statistics(const nn::Layout& layout, std::span<const core::ConstSpan> workers);

}  // namespace troupe::experiment
