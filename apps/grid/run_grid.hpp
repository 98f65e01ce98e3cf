/// Executes a grid: the runs that are not done, several at once, each as a child process of this executable (`troupe train`). Blocks until
/// all have ended. One grid per directory at a time, over all processes.
#pragma once

#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include "apps/grid/progress.hpp"
#include "apps/grid/resolved_grid.hpp"
#include "apps/grid/status_index.hpp"
#include "core/clock.hpp"

namespace troupe::grid {

struct GridOptions {
  std::vector<std::string> places{""};      // where runs train, one each (PoolOptions)
  std::vector<std::string> node_arguments;  // to reach nodes: --ca FILE …
  std::string executable;                   // executable of the children
  std::vector<double> estimates_s;          // [runs], 0: unknown
  const core::Clock* clock = nullptr;
  bool replan = false;                              // resumed runs make the choices of plan.json anew
  const std::atomic<int>* save_requests = nullptr;  // when it grows, running children save a checkpoint; null: never
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
