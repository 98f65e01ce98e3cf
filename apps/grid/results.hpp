/// The results of a grid's runs, as results.csv, results.jsonl and the closing table (docs/formats/grid.md). Pure functions except
/// write_results().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/grid/resolved_grid.hpp"
#include "apps/grid/status_index.hpp"

namespace troupe::grid {

/// The scalars of a summary under dotted names ("test.accuracy"), in its order. Omits lists, and objects that contain lists.
[[nodiscard]] std::vector<std::pair<std::string, nlohmann::ordered_json>> flatten(
    const nlohmann::ordered_json& summary);

/// The number `metric` of the run's summary; none: it has no such number, or there is no summary.
[[nodiscard]] std::optional<double> number_in(const RunStatus& run_status, std::string_view metric);

/// The numbers in every summary: a table can be sorted by them.
[[nodiscard]] std::vector<std::string> metric_names();

/// A header, and one row per run in the order of the grid: varied keys, seed, status, exit_code, error, run, summary.
[[nodiscard]] std::string to_csv(const ResolvedGrid& grid, std::span<const RunStatus> statuses);
/// {"name", "base", "settings", "seed", "status", "exit_code", "error", "directory", "summary"} per run.
[[nodiscard]] nlohmann::ordered_json to_json(const GridRun& run, const std::string& base, const RunStatus& run_status);
[[nodiscard]] std::string to_jsonl(const ResolvedGrid& grid, std::span<const RunStatus> statuses);

/// JSON as a line, with its end. Text of other programs need not be UTF-8: what is not is replaced.
[[nodiscard]] std::string one_line(const nlohmann::ordered_json& json);

/// Replaces results.csv and results.jsonl in grid.directory, each as a whole or not at all. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_results(const ResolvedGrid& grid, std::span<const RunStatus> statuses);

/// One line per combination over its seeds: varied keys, runs, and mean ± sample standard deviation of `metric` and the usual metrics over
/// the completed runs. Sorted by `metric`, best first: accuracies, top5 and rates descending, others ascending; missing values last.
[[nodiscard]] std::string table(const ResolvedGrid& grid, std::span<const RunStatus> statuses, std::string_view metric);

/// Rows of cells as lines of text, in columns that are as wide as their widest cell.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& cells);

/// Whether a higher value of `metric` is better.
[[nodiscard]] bool higher_is_better(std::string_view metric) noexcept;

}  // namespace troupe::grid
