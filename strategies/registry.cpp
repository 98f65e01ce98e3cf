#include "strategies/registry.hpp"

#include <array>

#include "strategies/bsp.hpp"
#include "strategies/downpour.hpp"
#include "strategies/eamsgd.hpp"
#include "strategies/easgd.hpp"
#include "strategies/ssp.hpp"
#include "strategies/sync_easgd.hpp"

namespace troupe::strategies {

std::span<const StrategyInfo> registry() {
  static const std::array rows{bsp(), easgd(), eamsgd(), sync_easgd(), downpour(), ssp()};
  return rows;
}

const core::Table<StrategyConfig>& strategy_table() {
  static const core::Table<StrategyConfig> table = [] {
    std::vector<std::string> names;
    for (const auto& row : registry()) names.push_back(row.name);
    return core::Table<StrategyConfig>{"strategy",
                                       {{"name", &StrategyConfig::name, core::one_of(names),
                                         "how the workers stay together (see `troupe strategies`)"}}};
  }();
  return table;
}

const StrategyInfo* find(std::string_view name) {
  for (const auto& row : registry()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

void add_options(core::Schema& schema) {
  schema.add(strategy_table());
  for (const auto& row : registry()) row.add_options(schema);
}

core::Result<std::unique_ptr<Strategy>> make(const core::Config& config, const Company& company) {
  const auto name = config.get(strategy_table()).name;
  const auto* row = find(name);
  if (!row)
    return core::fail(core::Errc::config, config.where("strategy.name") + ": no strategy is called \"" + name + "\"");
  return row->make(config, company);
}

}  // namespace troupe::strategies
