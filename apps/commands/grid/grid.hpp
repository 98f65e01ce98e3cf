/// What grids and sweeps have in common as commands. Thread rule: the main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/grid/grid_file.hpp"
#include "apps/grid/progress.hpp"
#include "apps/grid/resolved_grid.hpp"
#include "apps/interrupt.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::apps {

struct GridArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::string sort = "test.accuracy";
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

/// Where runs train (grid::PoolOptions): this machine, --jobs times, or --nodes, --nodes-per-run together. Errc::usage, config.
[[nodiscard]] core::Result<std::vector<std::string>> places_of(const GridArguments& arguments);
/// What runs need to reach the nodes.
[[nodiscard]] std::vector<std::string> node_arguments_of(const GridArguments& arguments);
/// The checks of `troupe check` that need a backend.
[[nodiscard]] grid::Check run_check();
[[nodiscard]] grid::ProgressMode progress_mode(const GridArguments& arguments);

/// Runs the sweep of `file`, or lists it (--dry-run). REQUIRES file.sweep.
[[nodiscard]] core::Result<void> run_sweep_command(const GridArguments& arguments, grid::GridFile file,
                                                   Interrupt& interrupt);

}  // namespace troupe::apps
