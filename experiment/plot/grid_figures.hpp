/// The pictures of a grid: metrics over what varies, seeds (and keys that are not shown) taken together. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/grid_record.hpp"

namespace troupe::plot {

/// Mean and sample standard deviation; NaN where there are no numbers; 0 deviation for one.
struct Mean {
  double mean, deviation;
};
[[nodiscard]] Mean mean_of(const std::vector<double>& numbers);

/// For each pair of varied keys (the first three keys) and each series: the mean of `metric`, "heat-<metric>-<key>-<key>…". A key is
/// named by its last part, and in full where two end alike; no two figures have one name.
[[nodiscard]] std::vector<Figure> heat_maps(const GridRecord& grid, const std::string& metric);

/// For each varied key: the mean of `metric` over its values, a line per series; in a grid of one series a line per value of
/// another key. "lines-<metric>-<key>".
[[nodiscard]] std::vector<Figure> lines(const GridRecord& grid, const std::string& metric);

/// "test accuracy [%]": what an axis says, and the factor from the summary's number to that unit.
struct Unit {
  std::string label;
  double factor = 1;
};
[[nodiscard]] Unit unit_of(const std::string& metric);

}  // namespace troupe::plot
