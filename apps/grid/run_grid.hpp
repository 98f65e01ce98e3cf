/// Runs a plan: the runs that are not done, several at once, each as a child process of this executable (`troupe train`).
/// Blocks until all have ended. One grid per directory at a time, over all processes.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "apps/grid/ledger.hpp"
#include "apps/grid/plan.hpp"
#include "apps/grid/progress.hpp"

namespace troupe::grid {

struct GridOptions {
  std::size_t jobs = 1;
  std::string executable;           // what the children run
  std::vector<double> estimates_s;  // [runs], 0: not known
  const core::Clock* clock = nullptr;
  bool replan = false;  // runs that go on choose anew what their plan.json says
};

struct GridEnd {
  std::vector<Outcome> outcomes;  // [runs]
  bool interrupted = false;       // the grid or a run was, and something is left to go on with
};

/// `stop`: running children are sent SIGINT once (they save a checkpoint and end), the others do not begin.
/// A run that another process trains (Status::running) is left to it; when that has ended its result counts, or the grid goes on
/// with it. results.csv and results.jsonl are replaced each time a run ends. Call on the thread that lives longest (Children). Errors:
/// Errc::io or no_space for the directory and the results; Errc::timeout when another grid has the directory. What a run meets
/// is its Outcome.
[[nodiscard]] core::Result<GridEnd> run_grid(const Plan& plan, const GridOptions& options, Progress& progress,
                                             std::stop_token stop);

}  // namespace troupe::grid
