/// CONFIG and --set, for all commands that use a configuration. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

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

}  // namespace troupe::apps
