/// The pictures of waits between a run's members, and of the staleness of updates. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

/// "waits" and "staleness" of one run, as far as the run has them; `suffix` is added to the names.
[[nodiscard]] std::vector<Figure> cluster_figures(const RunRecord& run, const std::string& suffix);

/// "0", "4–5", "≥ 64": a bin of a staleness histogram.
[[nodiscard]] std::string bin_label(const std::vector<double>& edges, std::size_t bin);

}  // namespace troupe::plot
