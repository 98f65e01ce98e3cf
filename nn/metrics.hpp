/// Running averages over batches. Values; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/backend.hpp"

namespace troupe::nn {

/// Sums StepResults in the order given, in double: the same order gives the same bits. Means are over samples, not batches, so a
/// short last batch counts by its samples. All means are 0 while there are no samples.
class RunningMetrics {
 public:
  /// `classes`: of the model; top-5 is meaningless below five.
  explicit RunningMetrics(std::int64_t classes) : classes_(classes) {}

  void add(const StepResult& result) noexcept;
  void add(const RunningMetrics& other) noexcept;  ///< as if its batches had been added here
  void reset() noexcept { *this = RunningMetrics(classes_); }

  [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
  [[nodiscard]] std::int64_t batches() const noexcept { return batches_; }
  [[nodiscard]] double loss() const noexcept;                 ///< mean over samples
  [[nodiscard]] double top1() const noexcept;                 ///< share of correct samples, in [0, 1]
  [[nodiscard]] std::optional<double> top5() const noexcept;  ///< none for models with fewer than five classes
  [[nodiscard]] bool finite() const noexcept;                 ///< false once a loss was NaN or infinite

 private:
  std::int64_t classes_ = 0;
  std::int64_t samples_ = 0;
  std::int64_t batches_ = 0;
  std::int64_t top1_ = 0;
  std::int64_t top5_ = 0;
  double loss_sum_ = 0;
};

}  // namespace troupe::nn
