/// A grid's runs, each resolved and checked like any configuration, before one of them begins. Reads the base configurations;
/// writes nothing. Thread rule: values and pure functions otherwise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiment/settings.hpp"
#include "apps/grid/expansion.hpp"

namespace troupe::grid {

struct PlannedRun {
  std::string name;         // run.name
  Combination combination;  // without keys that the run's strategy does not read
  experiment::Settings settings;
  std::string
      identity;  // equal exactly when two runs have the same settings, wherever they are and whatever they are called
};

struct Plan {
  GridFile file;
  std::string directory;  // <run.dir>/<name of the grid file>; run.dir as the first run has it
  std::vector<PlannedRun> runs;
  std::vector<std::string> varied;  // keys, as varied_keys()
  std::size_t merged = 0;           // combinations left out because another has the same settings
};

/// What a run's settings are checked with beyond core::Config and experiment::resolve; may be empty.
using Check = std::function<core::Result<void>(const experiment::Settings&)>;

/// Errors: Errc::config, with file:line where a key of the grid is to blame, and the combination; those of `check`.
[[nodiscard]] core::Result<Plan> plan(GridFile file, const std::vector<std::string>& overrides, const Check& check);

/// The identity of the run that a saved config.toml is of.
[[nodiscard]] core::Result<std::string> identity_of(const std::string& config_file);

}  // namespace troupe::grid
