/// The pictures of runs: curves of several runs together, and waits and staleness of one run. Pure functions.
#pragma once

#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

/// "loss" and "accuracy", each over epochs and over seconds: points at evaluations on the test split, dashed lines for those on the
/// validation split, thin lines for training within epochs. A figure has the runs that have numbers for it; without any: no figure. Empty `title`: the number of these runs.
[[nodiscard]] std::vector<Figure> curves(const std::vector<RunRecord>& runs, const std::string& title);

/// The same curves as panels of one figure with this name; none without a number.
[[nodiscard]] std::vector<Figure> curves_together(const std::vector<RunRecord>& runs, const std::string& name,
                                                  const std::string& title);

/// Whether curves() show anything of the run.
[[nodiscard]] bool has_curves(const RunRecord& run);

/// "waits" and "staleness" of one run, as far as the run has them; `suffix` is added to the names.
[[nodiscard]] std::vector<Figure> cluster_figures(const RunRecord& run, const std::string& suffix);

/// "0", "4–5", "≥ 64": a bin of a staleness histogram.
[[nodiscard]] std::string bin_label(const std::vector<double>& edges, std::size_t bin);

}  // namespace troupe::plot
