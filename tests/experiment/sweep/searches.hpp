/// Searches of conditional_space(), whose trials have known results.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "experiment/sweep/search.hpp"
#include "tests/experiment/sweep/spaces.hpp"

namespace troupe::sweep {

inline SearchOptions asha_options(std::size_t trials) {
  SearchOptions options;
  options.rungs = {1, 3, 9};
  options.trials = trials;
  options.tpe.start = 5;
  return options;
}

/// An accuracy that grows with the epochs, and is greatest at lr = 0.05.
inline double accuracy(const Point& point, std::int64_t epochs) {
  return 1 - std::pow(std::log10(*point[0] / 0.05), 2) / 10 - 0.3 / static_cast<double>(epochs);
}

/// Great rates diverge at once, smaller ones later, or where nobody knows.
inline Search::Result result_of(const Search& search, const Step& step) {
  const auto& point = search.trials()[step.trial].point;
  if (*point[0] > 0.7) return {.score = std::nullopt, .diverged_after = 0.25};
  if (*point[0] > 0.5 && step.rung > 0) return {.score = std::nullopt, .diverged_after = 1.5};
  if (*point[0] > 0.4 && step.rung > 0) return {.score = std::nullopt};
  return {.score = accuracy(point, search.options().rungs[step.rung])};
}

}  // namespace troupe::sweep
