/// The registry of strategies. To add one: a file pair, a line in registry.cpp, a test and a config. A program that links Troupe
/// adds its own with add(). Thread-safe after the first call.
#pragma once

#include <span>
#include <string_view>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct StrategyConfig {
  std::string name = "bsp";
};
[[nodiscard]] const core::Table<StrategyConfig>& strategy_table();  ///< section "strategy", key "name"

[[nodiscard]] std::span<const StrategyInfo> registry();
/// Appends a row: a strategy of the program itself. Call it in one thread, before any code reads the registry, so that
/// configuration, help and journals know the name. Throws std::logic_error if the registry was read already or the name is taken.
void add(StrategyInfo row);
[[nodiscard]] const StrategyInfo* find(std::string_view name);  ///< null if unknown

/// Adds strategy.name and every strategy's options, scoped by its name.
void add_options(core::Schema& schema);

/// The strategy that `config` names, checked against the run's shape: Errc::config if it lacks workers or servers.
[[nodiscard]] core::Result<std::unique_ptr<Strategy>> make(const core::Config& config, const RunShape& shape);

/// What `train.lr = "auto"` takes of the usual rate, for the strategy that `config` names.
[[nodiscard]] RateShare rate_share(const core::Config& config, const RunShape& shape);

/// Warnings about a valid but doubtful configuration, one line each, once the run's length is known: the strategy's own, and periods longer
/// than the run.
[[nodiscard]] std::vector<std::string> warnings(const core::Config& config, const Needs& needs, Step steps_per_worker);

}  // namespace troupe::strategies
