/// What a grid's directory holds already: which planned runs are done, failed, interrupted or missing. Reads only.
/// Thread rule: pure functions but for the files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/grid/plan.hpp"

namespace troupe::grid {

enum class Status : std::uint8_t {
  waiting,      ///< not begun
  done,         ///< reached its end
  diverged,     ///< exit 70: a result like another
  failed,       ///< ended by anything else that a new start may cure
  interrupted,  ///< can go on
  running,  ///< another process has the run's directory: a grid's that was killed, whose runs still save, or a user's
};
[[nodiscard]] std::string_view name(Status status) noexcept;

/// What became of one run.
struct Outcome {
  Status status = Status::waiting;
  int exit_code = -1;     // -1: none yet
  std::string error;      // one line
  std::string directory;  // the run's; empty when it has none
  std::string summary;    // summary.json, one line; empty when there is none
};

/// The outcome that a run directory tells: its summary, and how its metrics.jsonl ends. `interrupted` when there is a
/// checkpoint to go on from and no end, or an end that time cures (interrupted, lost peers, a full disk); `running` while a process
/// has its lock: `error` then says which.
[[nodiscard]] Outcome outcome_of(const std::string& run_directory);

/// The kind of failure that a process with this exit code met; internal where several share one.
[[nodiscard]] core::Errc errc_of(int exit_code) noexcept;

/// What happened when `exit_code` was a run's end and `error` what it said.
[[nodiscard]] Status status_of(int exit_code) noexcept;

struct Ledger {
  std::vector<Outcome> outcomes;       // [runs of the plan]
  std::vector<std::string> strangers;  // run directories that belong to no run of the plan
};

/// Matches the run directories in plan.directory (which may not exist) with the plan's runs, by settings. Where several are of
/// one run the best counts: done, diverged, running, interrupted. Errc::io.
[[nodiscard]] core::Result<Ledger> read_ledger(const Plan& plan);

}  // namespace troupe::grid
