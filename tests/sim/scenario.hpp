/// Small runs for tests: a strategy made from a configuration, and a cluster from text.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/cluster/placement.hpp"
#include "sim/simulation.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::sim {

struct Scenario {
  std::vector<std::string> settings;  // of the strategy: "strategy.name=easgd"
  std::string cluster{};              // a cluster file
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::uint64_t seed = 1;
  std::uint64_t floats = 1'000'000;
  std::int64_t batches = 4;  // of an epoch, all workers together
  std::uint32_t epochs = 1;
  std::int64_t prefetch = 0;
  core::OptimizerKind optimizer = core::OptimizerKind::sgd;
};

inline SimulatedRun run_of(const Scenario& scenario) {
  core::Schema schema;
  strategies::add_options(schema);
  const auto config = core::Config::parse(schema, "", "test", scenario.settings);
  if (!config) throw std::logic_error(config.error().message);
  auto strategy = strategies::make(
      *config, {.workers = scenario.workers, .servers = scenario.servers, .optimizer = {.kind = scenario.optimizer}});
  if (!strategy) throw std::logic_error(strategy.error().message);
  SimulatedRun run;
  run.strategy = std::move(*strategy);
  run.needs = run.strategy->needs();
  run.workers = scenario.workers;
  run.servers = run.needs.servers ? scenario.servers : 0;
  run.seed = scenario.seed;
  run.leases = {.epoch_size = scenario.batches,
                .epochs = scenario.epochs,
                .batches = std::vector<std::int64_t>(scenario.workers, 1),
                .sharing = run.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand};
  run.floats = scenario.floats;
  run.prefetch = scenario.prefetch;
  return run;
}

inline core::Result<SimulationResult> simulate(const SimulatedRun& run, const std::string& cluster_text) {
  const auto file = parse_cluster(cluster_text, "cluster.toml");
  if (!file) return tl::unexpected(file.error());
  const auto cluster = place(*file, {.workers = run.workers, .servers = run.servers});
  if (!cluster) return tl::unexpected(cluster.error());
  auto leases = data::LeaseScheduler::create(run.leases);
  if (!leases) return tl::unexpected(leases.error());
  return Simulation(run, *cluster, std::move(*leases)).run();
}

/// For a scenario without errors.
inline SimulationResult result_of(const Scenario& scenario) {
  auto result = simulate(run_of(scenario), scenario.cluster);
  if (!result) throw std::logic_error(result.error().message);
  return std::move(*result);
}

}  // namespace troupe::sim
