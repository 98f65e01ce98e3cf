/// Which classes a model takes for which. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::experiment {

/// Counts samples by (label, prediction). Memory: the pairs that occur, at most as many as there are samples.
class ConfusionMatrix {
 public:
  /// Adds a batch: `outputs` [at least labels.size(), n], row-major. The prediction is the greatest output, of equal ones the first, as for
  /// nn::StepResult::top1. REQUIRES labels below n (std::invalid_argument).
  void add(std::span<const std::int32_t> labels, std::span<const float> outputs, std::int64_t outputs_per_sample);
  void add(std::int32_t label, std::int32_t prediction);

  /// Sums of one class's samples. Classes are those that occur as a label.
  struct ClassCount {
    std::int32_t label = 0;
    std::int64_t samples = 0;
    std::int64_t correct = 0;
    [[nodiscard]] double accuracy() const noexcept {
      return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0;
    }
  };
  [[nodiscard]] std::vector<ClassCount> classes() const;  ///< by label
  /// The same, the lowest accuracy first, then by label; at most `most`.
  [[nodiscard]] std::vector<ClassCount> worst(std::size_t most) const;

  struct Cell {
    std::int32_t label = 0, prediction = 0;
    std::int64_t samples = 0;
    bool operator==(const Cell&) const = default;
  };
  [[nodiscard]] std::int64_t count(std::int32_t label, std::int32_t prediction) const;
  [[nodiscard]] std::vector<Cell> cells() const;  ///< above 0; by label, then by prediction
  /// The wrong prediction that samples of `label` get most often, of equal ones the first; 0 samples: none is wrong.
  [[nodiscard]] Cell most_often_taken_for(std::int32_t label) const;
  [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }

 private:
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts_;
  std::int64_t samples_ = 0;
};

}  // namespace troupe::experiment
