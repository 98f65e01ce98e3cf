#include "strategies/registry/registry.hpp"

#include <atomic>
#include <stdexcept>
#include <utility>

#include "core/text/plural.hpp"
#include "strategies/bsp.hpp"
#include "strategies/combined/averaged.hpp"
#include "strategies/combined/mixed.hpp"
#include "strategies/diloco.hpp"
#include "strategies/downpour.hpp"
#include "strategies/eamsgd.hpp"
#include "strategies/easgd.hpp"
#include "strategies/gossip.hpp"
#include "strategies/local_sgd.hpp"
#include "strategies/pairs.hpp"
#include "strategies/ssp.hpp"
#include "strategies/sync_easgd.hpp"

namespace troupe::strategies {

namespace {

struct Rows {
  std::vector<StrategyInfo> all{bsp(),       easgd(),  eamsgd(), sync_easgd(), downpour(), ssp(),
                                local_sgd(), diloco(), mixed(),  gossip(),     pairs()};
  std::atomic<bool> read = false;  // callers may hold spans of the rows
};

Rows& rows() {
  static Rows rows;
  return rows;
}

}  // namespace

std::span<const StrategyInfo> registry() {
  rows().read = true;
  return rows().all;
}

void add(StrategyInfo row) {
  auto& [all, read] = rows();
  if (read) throw std::logic_error("strategy " + row.name + " is added after the registry was read");
  for (const auto& other : all)
    if (other.name == row.name) throw std::logic_error("there is a strategy " + row.name + " already");
  all.push_back(std::move(row));
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

core::Result<std::unique_ptr<Strategy>> make(const core::Config& config, const RunShape& shape) {
  const auto name = config.get(strategy_table()).name;
  const auto* row = find(name);
  if (!row)
    return core::fail(core::Errc::config, config.where("strategy.name") + ": no strategy is called \"" + name + "\"");
  if (shape.workers == 0)
    return core::fail(core::Errc::config,
                      config.where("strategy.name") + ": a strategy needs at least one worker: cluster.workers is 0");
  auto strategy = row->make(config, shape);
  if (strategy && (*strategy)->needs().servers && shape.servers == 0)
    return core::fail(core::Errc::config, config.where("strategy.name") + ": strategy.name = \"" + name +
                                              "\" keeps its model on servers: cluster.servers is 0");
  if (!strategy || shape.ema == 0) return strategy;
  if ((*strategy)->needs().averages())
    return core::fail(core::Errc::config,
                      config.where("train.ema") + ": train.ema and strategy.ema are two averages: set one of them");
  return averaged(std::move(*strategy), shape.ema);
}

RateShare share_of_pushes(std::uint32_t workers) {
  constexpr double kStale = 0.6;
  if (workers <= 1) return {};
  return {kStale / workers, std::to_string(workers) + " members add full steps to one centre"};
}

RateShare rate_share(const core::Config& config, const RunShape& shape) {
  const auto* row = find(config.get(strategy_table()).name);
  return row && row->rate_share ? row->rate_share(config, shape) : RateShare{};
}

std::vector<std::string> warnings(const core::Config& config, const Needs& needs, Step steps_per_worker) {
  auto lines = needs.doubts;
  for (const auto& [key, steps] : needs.periods) {
    if (steps <= steps_per_worker) continue;
    lines.push_back(config.where(key) + ": " + key + " = " + std::to_string(steps) + " is longer than the run" +
                    (steps_per_worker == 0 ? ", which has fewer steps than workers"
                                           : ": a worker takes " + core::counted(steps_per_worker, "step") +
                                                 ", so that it trains alone until the end"));
  }
  return lines;
}

}  // namespace troupe::strategies
