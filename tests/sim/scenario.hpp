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

inline Plan plan_of(const Scenario& scenario) {
  core::Schema schema;
  strategies::add_options(schema);
  const auto config = core::Config::parse(schema, "", "test", scenario.settings);
  if (!config) throw std::logic_error(config.error().message);
  auto strategy = strategies::make(
      *config, {.workers = scenario.workers, .servers = scenario.servers, .optimizer = {.kind = scenario.optimizer}});
  if (!strategy) throw std::logic_error(strategy.error().message);
  Plan plan;
  plan.strategy = std::move(*strategy);
  plan.needs = plan.strategy->needs();
  plan.workers = scenario.workers;
  plan.servers = plan.needs.servers ? scenario.servers : 0;
  plan.seed = scenario.seed;
  plan.leases = {.epoch_size = scenario.batches,
                 .epochs = scenario.epochs,
                 .batches = std::vector<std::int64_t>(scenario.workers, 1),
                 .sharing = plan.needs.in_step ? data::Sharing::shares : data::Sharing::on_demand};
  plan.floats = scenario.floats;
  plan.prefetch = scenario.prefetch;
  return plan;
}

inline core::Result<Outcome> simulate(const Plan& plan, const std::string& cluster_text) {
  const auto file = parse_cluster(cluster_text, "cluster.toml");
  if (!file) return tl::unexpected(file.error());
  const auto cluster = place(*file, {.workers = plan.workers, .servers = plan.servers});
  if (!cluster) return tl::unexpected(cluster.error());
  auto book = data::LeaseScheduler::create(plan.leases);
  if (!book) return tl::unexpected(book.error());
  return Simulation(plan, *cluster, std::move(*book)).run();
}

/// For a scenario without errors.
inline Outcome outcome_of(const Scenario& scenario) {
  auto outcome = simulate(plan_of(scenario), scenario.cluster);
  if (!outcome) throw std::logic_error(outcome.error().message);
  return std::move(*outcome);
}

}  // namespace troupe::sim
