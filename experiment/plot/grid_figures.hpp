/// The pictures of a grid: metrics over the varied keys, averaged over seeds (and keys that are not shown). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/grid_record.hpp"
#include "experiment/plot/run_figures.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

/// For each pair of varied keys (the first three keys) and each series: the mean of `metric`, "heat-<metric>-<key>-<key>…". The last part
/// of a key names it, or the whole key where two end alike; names of figures are unique.
[[nodiscard]] std::vector<Figure> heat_maps(const GridRecord& grid, const std::string& metric);

/// For each varied key: the mean of `metric` over its values, one line per series; with one series, one line per value of another key.
/// A series whose runs do not have the key is a constant. "lines-<metric>-<key>".
[[nodiscard]] std::vector<Figure> lines(const GridRecord& grid, const std::string& metric);

/// Where no other key than strategy, configuration and seed varies: the mean of `metric` per series, "bars-<metric>".
[[nodiscard]] std::vector<Figure> bars(const GridRecord& grid, const std::string& metric);

/// In the same case "loss" and "accuracy", a curve per series: the mean over its seeds. `runs`: of each run of the grid, in its order.
[[nodiscard]] std::vector<Figure> series_curves(const GridRecord& grid, const std::vector<RunRecord>& runs,
                                                const std::vector<Axis>& over = {Axis::epochs, Axis::seconds});

/// Axis text, "test accuracy [%]", and the factor from the summary's number to that unit.
struct Unit {
  std::string label;
  double factor = 1;
};
[[nodiscard]] Unit unit_of(const std::string& metric);

}  // namespace troupe::plot
