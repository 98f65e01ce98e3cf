/// The pictures of a sweep, from its record (docs/formats/grid.md). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/sweep/record.hpp"

namespace troupe::plot {

/// "parallel": a vertical axis for each parameter and one for the score; a line per trial with a score, in the score's colour, thin where the
/// trial was stopped early. A trial without a parameter crosses below its axis. "best": each score over the epochs trained until then, and
/// the best so far. "importance": the share of each parameter. A picture without numbers is left out.
[[nodiscard]] std::vector<Figure> sweep_figures(const sweep::Record& record, const std::string& name);

}  // namespace troupe::plot
