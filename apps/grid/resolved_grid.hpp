/// A grid's runs, each resolved and checked like any configuration before the first run begins. Reads the base configurations; writes
/// nothing. Thread rule: values; otherwise pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/grid/expansion.hpp"
#include "experiment/settings.hpp"

namespace troupe::grid {

struct GridRun {
  std::string name;         // run.name
  Combination combination;  // without keys that the strategy does not read
  experiment::Settings settings;
  std::string identity;  // equal exactly when two runs have the same settings, in any place and under any name
};

struct ResolvedGrid {
  GridFile file;
  std::string directory;  // <run.dir>/<name of the grid file>; run.dir of the first run
  std::vector<GridRun> runs;
  std::vector<std::string> varied;  // keys, as varied_keys()
  std::size_t merged = 0;           // combinations omitted because another has the same settings
};

/// Further checks of a run's settings, after core::Config and experiment::resolve; may be empty.
using Check = std::function<core::Result<void>(const experiment::Settings&)>;

/// Errc::config with the combination, and file:line where a key of the grid is wrong; errors of `check`.
[[nodiscard]] core::Result<ResolvedGrid> resolve(GridFile file, const std::vector<std::string>& overrides,
                                                 const Check& check);

/// One run of a file with one base, by itself: `choices` for its configuration, in `directory`, called `name`. `unnamed` (KEY=VALUE): what
/// its identity leaves out besides. Errors as resolve().
[[nodiscard]] core::Result<GridRun> resolve_run(const GridFile& file, const std::vector<std::string>& overrides,
                                                std::vector<Choice> choices, const std::string& name,
                                                const std::string& directory, const std::vector<std::string>& unnamed,
                                                const Check& check);

/// The identity of the run that a saved config.toml describes.
[[nodiscard]] core::Result<std::string> identity_of(const std::string& config_file,
                                                    const std::vector<std::string>& unnamed = {});

}  // namespace troupe::grid
