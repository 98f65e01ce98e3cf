/// Σ a_i x_i / Σ a_i over vectors that come one by one: the model of strategies whose workers hold shares of it. Sums in the
/// order of add(), so equal calls give equal bits. One thread.
#pragma once

#include <vector>

#include "core/kernels.hpp"

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

}  // namespace troupe::experiment
