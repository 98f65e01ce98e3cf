/// The pictures of a grid: metrics over the varied keys, averaged over seeds (and keys that are not shown). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/grid_record.hpp"

namespace troupe::plot {

/// Mean and sample standard deviation; NaN without numbers; deviation 0 for one number.
struct Mean {
  double mean, deviation;
};
[[nodiscard]] Mean mean_of(const std::vector<double>& numbers);

/// For each pair of varied keys (the first three keys) and each series: the mean of `metric`, "heat-<metric>-<key>-<key>…". The last part
/// of a key names it, or the whole key where two end alike; names of figures are unique.
[[nodiscard]] std::vector<Figure> heat_maps(const GridRecord& grid, const std::string& metric);

/// For each varied key: the mean of `metric` over its values, one line per series; with one series, one line per value of another key.
/// "lines-<metric>-<key>".
[[nodiscard]] std::vector<Figure> lines(const GridRecord& grid, const std::string& metric);

/// Axis text, "test accuracy [%]", and the factor from the summary's number to that unit.
struct Unit {
  std::string label;
  double factor = 1;
};
[[nodiscard]] Unit unit_of(const std::string& metric);

}  // namespace troupe::plot
