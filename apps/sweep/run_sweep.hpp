/// Executes a sweep: asks the search for steps, trains each as a child process (`troupe train`, grid/pool/run_pool.hpp), and records decisions and
/// results in sweep.jsonl, from which a sweep that was interrupted or killed at any moment goes on. Blocks until the search has ended. One
/// sweep or grid per directory at a time, over all processes.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "apps/grid/pool/run_pool.hpp"
#include "apps/grid/progress.hpp"
#include "apps/sweep/sweep_plan.hpp"
#include "experiment/sweep/record.hpp"

namespace troupe::apps {

struct SweepEnd {
  grid::ResolvedGrid runs;  // of all trials, in their order
  std::vector<grid::RunStatus> statuses;
  sweep::Record record;
  bool interrupted = false;  // with work left to continue
  std::optional<core::Error>
      stopped;  // why the sweep began nothing more: a run failed for a reason that would end the next ones, too
};

/// `stop`: running children save a checkpoint and end; no further step begins. The same at the end of the hours, which is the sweep's end: with
/// more hours it goes on from there. A run that fails for its settings is left out: exit 78 or 71
/// when it begins, or 70. After another failure the running steps end, and the sweep stops: started again, it repeats what failed.
/// sweep.json, results.csv and results.jsonl are replaced when the sweep begins, and whenever a step begins or ends. Errors: Errc::io, no_space; Errc::timeout when another one holds the directory;
/// Errc::config, corrupt of the log.
[[nodiscard]] core::Result<SweepEnd> run_sweep(const SweepPlan& plan, const grid::PoolOptions& options,
                                               grid::Progress& progress, std::stop_token stop);

/// The sweep's state according to its directory, for a dry run. Reads only. Errors as run_sweep().
[[nodiscard]] core::Result<sweep::Record> peek(const SweepPlan& plan);

}  // namespace troupe::apps
