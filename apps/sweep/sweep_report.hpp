/// What a sweep says of itself: its record for readers (sweep.json), and the closing table. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/grid/status_index.hpp"
#include "apps/sweep/sweep_plan.hpp"
#include "experiment/sweep/record.hpp"

namespace troupe::apps {

/// A trial's times and states that the Search does not know.
struct TrialState {
  std::string name;
  grid::RunStatus status;
  std::vector<double> scored_s{};
  std::string invalid{};  // why its settings make no run; empty: they do
};

/// `state`: "running", "interrupted" or "finished".
[[nodiscard]] sweep::Record record_of(const SweepPlan& plan, const sweep::Search& search,
                                      std::span<const TrialState> states, double elapsed_s, std::string state);

/// A number of the trials' summaries, by trial; none: its summary has no such number, or there is none.
struct TrialMetric {
  std::string name;
  std::vector<std::optional<double>> values;
};
[[nodiscard]] TrialMetric metric_of(const std::string& name, std::span<const grid::RunStatus> statuses);

/// A line per trial, best first: the settings, epochs, the score; behind them those without a score. At most `most`; 0: all. With `sort`
/// they are in the order of that number, best first, which has a column of its own unless it is the score's. Then what the sweep has cost
/// beside the same trials trained to their ends, and what decides.
[[nodiscard]] std::string table_of(const sweep::Record& record, std::size_t most,
                                   const std::optional<TrialMetric>& sort = {});

/// "test.accuracy 0.9912".
[[nodiscard]] std::string score_text(const std::string& metric, const std::optional<double>& score);

}  // namespace troupe::apps
