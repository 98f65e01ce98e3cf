/// The pictures of runs: curves of several together, and how one of them waited and how stale its updates were. Pure functions.
#pragma once

#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

/// "loss" and "accuracy", each over epochs and over seconds. Without an evaluation: none.
[[nodiscard]] std::vector<Figure> curves(const std::vector<RunRecord>& runs, const std::string& title);

/// "waits" and "staleness" of one run, each where the run has it; `suffix` is added to the names.
[[nodiscard]] std::vector<Figure> company(const RunRecord& run, const std::string& suffix);

/// "0", "4–5", "≥ 64": a bin of a staleness histogram.
[[nodiscard]] std::string bin_label(const std::vector<double>& edges, std::size_t bin);

}  // namespace troupe::plot
