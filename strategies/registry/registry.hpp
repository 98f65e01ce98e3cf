/// The strategies there are. Adding one is a file pair, a line in registry.cpp, a test and a config; a program that links Troupe
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
/// One more row, behind the others: a strategy that the program brings with it. Before anything reads the registry (configuration,
/// help and journals know its name then), in one thread. std::logic_error: too late, or the name is taken.
void add(StrategyInfo row);
[[nodiscard]] const StrategyInfo* find(std::string_view name);  ///< null when unknown

/// Adds strategy.name and every strategy's options, scoped by its name.
void add_options(core::Schema& schema);

/// The strategy that `config` names, checked against the company: Errc::config when it lacks workers or servers.
[[nodiscard]] core::Result<std::unique_ptr<Strategy>> make(const core::Config& config, const Company& company);

/// What the company may do and hardly means, a line each, once the run's length is known: periods longer than the run.
[[nodiscard]] std::vector<std::string> warnings(const core::Config& config, const Needs& needs, Step steps_per_worker);

}  // namespace troupe::strategies
