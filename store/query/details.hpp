/// All that a store knows of a run, and which keys differ between runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "store/metrics_reader.hpp"
#include "store/run_notes.hpp"
#include "store/run_values.hpp"

namespace troupe::store {

struct RunDetails {
  std::int64_t id = 0;
  std::string path, name, started, status, grid, error, problem;
  Values options;  // of the configuration, with run.name and run.seed, by key
  Values results;  // scalars of the summary, by key
  std::string summary;
  RunNotes notes;
  std::vector<std::pair<std::string, std::string>> lineage;  // kind, source
};

/// The run whose directory is `path`, relative to the store's; nothing: there is none.
[[nodiscard]] core::Result<std::optional<std::int64_t>> run_at(Database& database, const std::string& path);

/// Errc::config: the store has no such run.
[[nodiscard]] core::Result<RunDetails> details_of(Database& database, std::int64_t run);

/// The points of all curves of a run, by series and epoch.
[[nodiscard]] core::Result<std::vector<Point>> curves_of(Database& database, std::int64_t run);

/// Keys whose values differ between runs, or that only some of them have; by key. Without run.name and run.dir.
[[nodiscard]] std::vector<std::string> differing_keys(const std::vector<RunDetails>& runs);

}  // namespace troupe::store
