/// What `troupe train` and `troupe launch` have in common. Thread rule: the main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "actors/run/run.hpp"
#include "apps/interrupt.hpp"
#include "core/error.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::apps {

struct TrainArguments {
  std::string config;
  std::string resume;
  std::string init;
  bool partial = false;
  std::vector<std::string> overrides;
  std::optional<std::string> nodes;  // empty: an unfilled list, which is an error
  std::size_t min_nodes = 0;
  security::TlsFiles tls;
  bool replan = false;
  bool dry_run = false;
  std::string profile;  // of the dry run
  std::string directory_file;
  bool json = false;
  bool quiet = false;
  bool plain = false;
};

/// Adds --nodes with this help, --min-nodes, and the flags of certificates. Returns --nodes.
CLI::Option* add_nodes_flags(CLI::App& app, TrainArguments& arguments, const std::string& help);
/// Adds --json, --quiet, --plain and --directory-file.
void add_output(CLI::App& app, TrainArguments& arguments);
/// Errc::usage: flags that need --nodes, without it.
[[nodiscard]] core::Result<void> check_nodes(const TrainArguments& arguments);
/// Adds `--nodes` and what it needs to `request`, if it was given. Errc::usage, config.
[[nodiscard]] core::Result<void> add_nodes(const TrainArguments& arguments, actors::RunRequest& request);

/// Trains until the run ends. `request`: the settings and the members.
[[nodiscard]] core::Result<void> train(const TrainArguments& arguments, actors::RunRequest request,
                                       Interrupt& interrupt);

}  // namespace troupe::apps
