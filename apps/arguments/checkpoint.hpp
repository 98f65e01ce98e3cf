/// CHECKPOINT|RUN_DIR with --config and --set, for all commands that use a trained model. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "experiment/settings.hpp"

namespace troupe::apps {

struct CheckpointArguments {
  std::string path;
  std::string config;
  std::vector<std::string> overrides;
};

void add_checkpoint(CLI::App& app, CheckpointArguments& arguments);

/// The settings of the run that made the model: of --config, of the run directory, or of the checkpoint itself. Errc::config: there are
/// none, as in another program's file without --config.
[[nodiscard]] core::Result<experiment::Settings> settings_of(const CheckpointArguments& arguments);

}  // namespace troupe::apps
