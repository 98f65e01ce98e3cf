#include "experiment/confusion_matrix.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace troupe::experiment {

void ConfusionMatrix::add(std::span<const std::int32_t> labels, std::span<const float> outputs,
                          std::int64_t outputs_per_sample) {
  const auto width = static_cast<std::size_t>(outputs_per_sample);
  if (outputs.size() < labels.size() * width) throw std::invalid_argument("ConfusionMatrix: too few outputs");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= outputs_per_sample)
      throw std::invalid_argument("ConfusionMatrix: a label without an output");
    const auto row = outputs.subspan(i * width, width);
    add(labels[i], static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin()));
  }
}

void ConfusionMatrix::add(std::int32_t label, std::int32_t prediction) {
  ++counts_[{label, prediction}];
  ++samples_;
}

std::vector<ConfusionMatrix::ClassCount> ConfusionMatrix::classes() const {
  std::vector<ClassCount> classes;
  for (const auto& [pair, samples] : counts_) {
    if (classes.empty() || classes.back().label != pair.first) classes.push_back({.label = pair.first});
    classes.back().samples += samples;
    if (pair.first == pair.second) classes.back().correct += samples;
  }
  return classes;
}

std::vector<ConfusionMatrix::ClassCount> ConfusionMatrix::worst(std::size_t most) const {
  auto all = classes();
  std::ranges::stable_sort(all, {}, &ClassCount::accuracy);
  if (all.size() > most) all.resize(most);
  return all;
}

std::int64_t ConfusionMatrix::count(std::int32_t label, std::int32_t prediction) const {
  const auto found = counts_.find({label, prediction});
  return found == counts_.end() ? 0 : found->second;
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::cells() const {
  std::vector<Cell> cells;
  cells.reserve(counts_.size());
  for (const auto& [pair, samples] : counts_) cells.push_back({pair.first, pair.second, samples});
  return cells;
}

ConfusionMatrix::Cell ConfusionMatrix::most_often_taken_for(std::int32_t label) const {
  Cell most{.label = label};
  for (auto at = counts_.lower_bound({label, std::numeric_limits<std::int32_t>::min()});
       at != counts_.end() && at->first.first == label; ++at)
    if (at->first.second != label && at->second > most.samples) most = {label, at->first.second, at->second};
  return most;
}

}  // namespace troupe::experiment
