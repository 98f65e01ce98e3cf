/// Executes a grid: the runs that are not done, several at once, each as a child process of this executable (`troupe train`). Blocks until
/// all have ended. One grid per directory at a time, over all processes.
#pragma once

#include <stop_token>
#include <vector>

#include "apps/grid/pool/run_pool.hpp"
#include "apps/grid/progress.hpp"
#include "apps/grid/resolved_grid.hpp"
#include "apps/grid/status_index.hpp"

namespace troupe::grid {

struct GridOptions {
  PoolOptions pool;
  std::vector<double> estimates_s;  // [runs], 0: unknown
};

struct GridEnd {
  std::vector<RunStatus> statuses;  // [runs]
  bool interrupted = false;         // by a signal to the grid or a run, with work left to continue
};

/// `stop`: running children receive SIGINT once (they save a checkpoint and end), the others do not begin. If another process trains a run
/// (Status::running), the grid waits: a result of that process counts, otherwise the grid continues the run. results.csv and results.jsonl
/// are replaced each time a run ends. Call on the thread that lives longest (Children). Errors: Errc::io or no_space for the directory and
/// the results; Errc::timeout when another grid holds the directory. A run's error is in its RunStatus.
[[nodiscard]] core::Result<GridEnd> run_grid(const ResolvedGrid& grid, const GridOptions& options, Progress& progress,
                                             std::stop_token stop);

}  // namespace troupe::grid
