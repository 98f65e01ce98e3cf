/// What grids and sweeps have in common as commands. Thread rule: the main thread.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "apps/grid/grid_file.hpp"
#include "apps/grid/pool/run_pool.hpp"
#include "apps/grid/progress.hpp"
#include "apps/grid/resolved_grid.hpp"
#include "apps/interrupt.hpp"
#include "apps/progress_line.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::apps {

struct GridArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::optional<std::string> sort;  // none: a grid by the accuracy, a sweep by its ranking
  int jobs = 1;
  std::optional<std::string> nodes;
  int nodes_per_run = 1;
  security::TlsFiles tls;
  bool dry_run = false;
  bool replan = false;
  bool json = false;
  bool quiet = false;
  bool plain = false;
  std::string directory_file;
};

/// How and where runs train: by this executable, on this machine, --jobs times, or on --nodes, --nodes-per-run together. Errc::usage,
/// config, io.
[[nodiscard]] core::Result<grid::PoolOptions> pool_options(const GridArguments& arguments);

/// While it lives, the signals of this process are for the runs that it trains: they save and end, or save and go on. Outlives the pool.
class SignalsForRuns {
 public:
  SignalsForRuns(Interrupt& interrupt, grid::PoolOptions& options);
  ~SignalsForRuns();
  SignalsForRuns(const SignalsForRuns&) = delete;
  SignalsForRuns& operator=(const SignalsForRuns&) = delete;

 private:
  Interrupt& interrupt_;
  std::atomic<int> save_requests_ = 0;
};

/// The checks of `troupe check` that need a backend.
[[nodiscard]] grid::Check run_check();
[[nodiscard]] grid::ProgressMode progress_mode(const GridArguments& arguments);
/// Of the line while the file is checked: on a terminal only.
[[nodiscard]] ProgressLine::Mode checking_mode(const GridArguments& arguments);

/// Runs the sweep of `file`, or lists it (--dry-run). REQUIRES file.sweep.
[[nodiscard]] core::Result<void> run_sweep_command(const GridArguments& arguments, grid::GridFile file,
                                                   Interrupt& interrupt);

}  // namespace troupe::apps
