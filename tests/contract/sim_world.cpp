#include <chrono>

#include "experiment/run_spec.hpp"
#include "sim/cluster/placement.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/simulation.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/contract/worlds.hpp"

namespace troupe::contract {
namespace {

constexpr const char* kCluster = R"(
[hosts.fast]
count = 3
devices = 2
step_ms = 0.5
step_sigma = 0.3
[hosts.slow]
count = 4
step_ms = 1.5
memory_gb_per_s = 8
[network]
latency_us = 400
per_message_us = 5
gbit_per_s = 10
local_latency_us = 2
local_gb_per_s = 10
[servers]
per_request_us = 10
memory_gb_per_s = 10
[collectives]
sum_gb_per_s = 5
memory_gb_per_s = 10
[steps]
buckets = 3
)";

sim::SimulatedRun run_of(const experiment::RunSpec& spec, std::uint64_t floats) {
  const auto& settings = *spec.settings;
  sim::SimulatedRun run;
  run.strategy = spec.strategy;
  run.needs = spec.needs;
  run.workers = spec.workers;
  run.servers = spec.servers;
  run.seed = static_cast<std::uint64_t>(settings.run.seed);
  run.leases = {.epoch_size = spec.source.train->size(),
                .epochs = static_cast<std::uint32_t>(settings.run.epochs),
                .batches = data::batches_per_worker(settings.data, spec.workers).value(),
                .sharing = run.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand};
  run.train = settings.train;
  run.floats = floats;
  return run;
}

/// Losses of the first host at various times, some during an exchange. With some, requests are under way when the loss is detected. The
/// other host stays: a run ends when all workers are lost.
sim::FailureModel losses() {
  using namespace std::chrono_literals;
  sim::FailureModel failures{.detection = 50us, .rejoin = 200us};
  for (std::uint32_t k = 0; k < 24; ++k) failures.losses.push_back({0, 700us * (k + 1) + 37us * (k * k % 11)});
  return failures;
}

std::vector<float> center_of(sim::PhantomMemory& memory) {
  std::vector<float> all;
  for (strategies::ShardId shard = 0; shard < memory.shards(); ++shard) {
    const auto center = memory.shard(shard).view(strategies::kCenter);
    all.insert(all.end(), center.begin(), center.end());
  }
  return all;
}

}  // namespace

World sim_world() {
  return {"sim",
          [](const Scenario& scenario) {
            const tests::SmallRun files(run_options(scenario));
            const auto settings = files.settings();
            if (!settings) return Seen{settings.error().message};
            const auto spec = experiment::build_run_spec(*settings, true);
            if (!spec) return Seen{spec.error().message};
            const auto file = sim::parse_cluster(kCluster, "cluster.toml");
            auto cluster = file.and_then(
                [&](const auto& f) { return sim::place(f, {.workers = spec->workers, .servers = spec->servers}); });
            if (!cluster) return Seen{cluster.error().message};
            if (scenario.losses) cluster->failures = losses();
            auto gradients = sim::Gradients::create(*spec, tests::backend(), cluster->buckets);
            if (!gradients) return Seen{gradients.error().message};
            const auto began = center_of((*gradients)->memory());
            const auto run = run_of(*spec, began.size());
            Seen seen;
            try {
              const auto result = sim::Simulation(run, *cluster, data::LeaseScheduler::create(run.leases).value(),
                                                  {.gradients = gradients->get()})
                                      .run();
              if (!result) seen.error = result.error().message;
            } catch (const std::exception& broken) {
              seen.error = broken.what();
            }
            const auto ended = center_of((*gradients)->memory());
            for (std::size_t i = 0; i < ended.size(); ++i) seen.center.push_back({began[i], ended[i]});
            return seen;
          },
          true};
}

}  // namespace troupe::contract
