/// Runs side by side, for `troupe compare`: the options that differ, and the results. Reads the directories of runs; the rest is pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::apps {

struct ComparedRun {
  std::string directory;
  core::Config config;             // resolved
  nlohmann::ordered_json summary;  // null while the run trains, and after a kill
  plot::RunRecord record;
};

/// Errc::config for a directory that is not a run's, or whose configuration this program does not know.
[[nodiscard]] core::Result<std::vector<ComparedRun>> read_compared(const std::vector<std::string>& directories);

/// The keys whose values differ, in the order of a configuration; also keys that only some strategies read. Without the runs' own names.
[[nodiscard]] std::vector<std::string> differing_options(const std::vector<ComparedRun>& runs);

/// Two tables, a column per run: options that differ, results. `columns`: of the terminal; runs that do not fit side by side follow below.
/// 0: any width.
[[nodiscard]] std::string comparison_text(const std::vector<ComparedRun>& runs, std::size_t columns);

/// {"differ", "runs", "pictures"}: docs/formats/compare.md.
[[nodiscard]] nlohmann::ordered_json comparison_json(const std::vector<ComparedRun>& runs,
                                                     const std::vector<std::string>& pictures);

}  // namespace troupe::apps
