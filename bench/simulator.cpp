// Speed of virtual time: events per second and peak memory for EASGD with tau = 1 on one core. Arguments: workers steps shards.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/cluster/placement.hpp"
#include "sim/simulation.hpp"
#include "strategies/registry/registry.hpp"

namespace {

using namespace troupe;

constexpr std::string_view kCluster = R"(
[hosts.node]
count = 20000
step_ms = 3.0
step_sigma = 0.1
[network]
latency_us = 20
per_message_us = 2
gbit_per_s = 25
[servers]
per_request_us = 1
memory_gb_per_s = 10
)";

rusage usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

/// CPU time of this process only.
double cpu_s() {
  const auto used = usage();
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int fail(const std::string& message) {
  std::fprintf(stderr, "bench_simulator: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, std::uint32_t otherwise) {
    return argc > index ? static_cast<std::uint32_t>(std::atoi(argv[index])) : otherwise;
  };
  const auto workers = argument(1, 1000), steps = argument(2, 100), shards = argument(3, 16);
  const std::string strategy = argc > 4 ? argv[4] : "easgd";

  core::Schema schema;
  strategies::add_options(schema);
  const auto config = core::Config::parse(schema, "", "bench", {"strategy.name=" + strategy, "strategy.tau=1"});
  if (!config) return fail(config.error().message);
  auto made = strategies::make(*config, {.workers = workers, .servers = shards});
  if (!made) return fail(made.error().message);
  sim::SimulatedRun run;
  run.strategy = std::move(*made);
  run.needs = run.strategy->needs();
  run.workers = workers;
  run.servers = run.needs.servers ? shards : 0;
  run.leases = {.epoch_size = std::int64_t{workers} * steps,
                .epochs = 1,
                .batches = std::vector<std::int64_t>(workers, 1),
                .sharing = run.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand};
  run.floats = 431'080;
  const auto file = sim::parse_cluster(kCluster, "bench");
  if (!file) return fail(file.error().message);
  const auto cluster = sim::place(*file, {.workers = run.workers, .servers = run.servers});
  if (!cluster) return fail(cluster.error().message);
  auto leases = data::LeaseScheduler::create(run.leases);
  if (!leases) return fail(leases.error().message);

  const double began = cpu_s();
  sim::Simulation simulation(run, *cluster, std::move(*leases));
  const auto result = simulation.run();
  if (!result) return fail(result.error().message);
  const double took = cpu_s() - began;
  std::printf(
      "%-10s %6u workers x %4u steps, %2u shards: %11llu events in %6.2f CPU s, %5.2f M events/s, peak %5.0f MB\n",
      strategy.c_str(), workers, steps, run.servers, static_cast<unsigned long long>(result->events), took,
      static_cast<double>(result->events) / took / 1e6, static_cast<double>(usage().ru_maxrss) / 1024);
}
