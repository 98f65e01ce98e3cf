/// CONFIG and --set, for all commands that use a configuration. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "experiment/directory/run_directory.hpp"
#include "experiment/settings.hpp"

namespace troupe::apps {

/// Adds --set KEY=VALUE, which is repeatable.
CLI::Option* add_set(CLI::App& app, std::vector<std::string>& overrides);

/// The configuration file `path` with `overrides` applied. Errc::config.
[[nodiscard]] core::Result<core::Config> load_config(const std::string& path,
                                                     const std::vector<std::string>& overrides);
/// The configuration file `path` with `overrides` applied, resolved and checked. Errc::config.
[[nodiscard]] core::Result<experiment::Settings> load_settings(const std::string& path,
                                                               const std::vector<std::string>& overrides,
                                                               experiment::Use use = experiment::Use::run);

/// The same of overrides alone.
[[nodiscard]] core::Result<experiment::Settings> settings_without_file(const std::vector<std::string>& overrides,
                                                                       experiment::Use use);

/// What --resume of this run adds to its configuration file: `overrides`, and before them the defaults of another strategy that they name, in
/// place of the former one's.
[[nodiscard]] std::vector<std::string> resume_overrides(const experiment::RunDirectory& run,
                                                        const std::vector<std::string>& overrides);

}  // namespace troupe::apps
