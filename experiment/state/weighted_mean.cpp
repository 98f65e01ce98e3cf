#include "experiment/state/weighted_mean.hpp"

#include <stdexcept>

namespace troupe::experiment {

void WeightedMean::add(core::ConstSpan vector, double weight) {
  if (sum_.empty()) sum_.resize(vector.size());
  if (vector.size() != sum_.size()) throw std::invalid_argument("weighted mean of vectors of different length");
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += weight * static_cast<double>(vector[i]);
  weight_ += weight;
}

void WeightedMean::take(core::Span mean) const {
  if (!(weight_ > 0)) throw std::logic_error("weighted mean without weight");
  for (std::size_t i = 0; i < sum_.size(); ++i) mean[i] = static_cast<float>(sum_[i] / weight_);
}

std::vector<float> mean_statistics(const nn::Layout& layout, std::span<const core::ConstSpan> workers) {
  std::vector<std::vector<float>> copies;  // reduce_all writes to all its inputs
  for (const auto worker : workers) copies.emplace_back(worker.begin(), worker.end());
  std::vector<core::Span> views(copies.begin(), copies.end());
  if (layout.arena_floats() > 0) core::host_kernels().reduce_all(views, 1 / static_cast<float>(views.size()));
  std::vector<float> canonical(layout.canonical_floats());
  if (!canonical.empty()) layout.to_canonical(views.at(0), canonical);
  return canonical;
}

}  // namespace troupe::experiment
