/// The status of a grid's runs in its directory: done, failed, interrupted or missing. Reads only. Thread rule: pure functions, except
/// for the files they read.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/grid/resolved_grid.hpp"

namespace troupe::grid {

enum class Status : std::uint8_t {
  waiting,      ///< not begun
  done,         ///< reached its end
  diverged,     ///< exit 70: a valid result
  failed,       ///< any other end; a new start may succeed
  interrupted,  ///< can be resumed
  running,      ///< another process has the run's directory: of a killed grid, still saving, or of the user
};
[[nodiscard]] std::string_view name(Status status) noexcept;

/// The status of one run, with what is known of its end.
struct RunStatus {
  Status status = Status::waiting;
  int exit_code = -1;     // -1: none yet
  std::string error;      // one line
  std::string directory;  // the run's; empty when it has none
  std::string summary;    // summary.json, one line; empty when there is none
  /// Of a run of a sweep: the rung that it has reached, as epochs, and the score there (none: diverged).
  struct Score {
    std::int64_t epochs = 0;
    std::optional<double> score;
  };
  std::optional<Score> score{};
};

/// The status according to a run directory: its summary, and the end of its metrics.jsonl. `interrupted` when there is a checkpoint to
/// resume from and no end, or a temporary failure (interrupted, lost peers, a full disk); `running` while a process has its lock: `error`
/// then names it.
[[nodiscard]] RunStatus run_status_of(const std::string& run_directory);

/// The error kind of a process's exit code; Errc::internal where several share one code.
[[nodiscard]] core::Errc errc_of(int exit_code) noexcept;

/// The status of a run that ended with `exit_code`.
[[nodiscard]] Status status_of(int exit_code) noexcept;

struct StatusIndex {
  std::vector<RunStatus> statuses;   // [runs of the grid]
  std::vector<std::string> foreign;  // run directories that match no run of the grid
};

/// Matches the run directories in grid.directory (which may not exist) with the grid's runs, by settings. If several match one run, the
/// best counts: done, diverged, running, interrupted. Errc::io.
[[nodiscard]] core::Result<StatusIndex> read_status_index(const ResolvedGrid& grid);

/// The same for runs of this directory. `unnamed`: as for their identities (resolve_run).
[[nodiscard]] core::Result<StatusIndex> read_status_index(const std::string& directory, std::span<const GridRun> runs,
                                                          const std::vector<std::string>& unnamed);

}  // namespace troupe::grid
