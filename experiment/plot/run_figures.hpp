/// The pictures of several runs together: their curves. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

/// What curves are drawn over. `samples`: those of all workers together, so that runs with different batches or data sets can be compared at
/// equal numbers of samples. A run whose log does not say how many samples an epoch has is not drawn over samples.
enum class Axis { epochs, seconds, samples };

/// "epochs", "seconds", "samples", in the enumerators' order: the words of `troupe plot --over`.
[[nodiscard]] const std::vector<std::string>& axis_names();
/// REQUIRES: one of axis_names().
[[nodiscard]] Axis axis_of(std::string_view name);

/// "loss" and "accuracy", each with a panel per axis: points at evaluations on the test split, dashed lines for those on the validation split,
/// thin lines for training within epochs. A figure has the runs that have numbers for it; without any: no figure. Accuracies that are 0
/// throughout count as no numbers: a program that reports none has these. Empty `title`: the number of these runs.
[[nodiscard]] std::vector<Figure> curves(const std::vector<RunRecord>& runs, const std::string& title,
                                         const std::vector<Axis>& over = {Axis::epochs, Axis::seconds});

/// The same curves as panels of one figure with this name; none without a number.
[[nodiscard]] std::vector<Figure> curves_together(const std::vector<RunRecord>& runs, const std::string& name,
                                                  const std::string& title);

/// Whether curves() show anything of the run.
[[nodiscard]] bool has_curves(const RunRecord& run);

}  // namespace troupe::plot
