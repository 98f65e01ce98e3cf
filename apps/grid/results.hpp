/// What a grid's runs came to, as results.csv, results.jsonl and the closing table (docs/formats/grid.md). Pure functions but for
/// write_results().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/grid/ledger.hpp"
#include "apps/grid/plan.hpp"

namespace troupe::grid {

/// The scalars of a summary under dotted names ("test.accuracy"), in its order. Lists, and objects that hold lists, are left out.
[[nodiscard]] std::vector<std::pair<std::string, nlohmann::ordered_json>> flatten(
    const nlohmann::ordered_json& summary);

/// The numbers that every summary has: what a table can be sorted by.
[[nodiscard]] std::vector<std::string> metric_names();

/// A header, and a row per run in the order of the plan: varied keys, seed, status, exit_code, error, run, summary.
[[nodiscard]] std::string to_csv(const Plan& plan, std::span<const Outcome> outcomes);
/// {"name", "base", "settings", "seed", "status", "exit_code", "error", "directory", "summary"} per run.
[[nodiscard]] nlohmann::ordered_json to_json(const PlannedRun& run, const std::string& base, const Outcome& outcome);
[[nodiscard]] std::string to_jsonl(const Plan& plan, std::span<const Outcome> outcomes);

/// Replaces results.csv and results.jsonl in plan.directory, each whole or not at all. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_results(const Plan& plan, std::span<const Outcome> outcomes);

/// One line per combination, its seeds taken together: varied keys, runs, and mean ± standard deviation (of a sample) of `metric`
/// and the usual ones over the runs that are done. Sorted by `metric`, best first: accuracies, top5 and rates from the highest,
/// the rest from the lowest; what has no value comes last.
[[nodiscard]] std::string table(const Plan& plan, std::span<const Outcome> outcomes, std::string_view metric);

/// Whether more of a metric is better.
[[nodiscard]] bool higher_is_better(std::string_view metric) noexcept;

}  // namespace troupe::grid
