/// Every strategy's variants as runs on an uneven cluster, for tests of properties of all strategies.
#pragma once

#include "tests/sim/scenario.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::sim {

inline constexpr const char* kUnevenCluster = R"(
[hosts.fast]
count = 3
devices = 2
step_ms = 3
step_sigma = 0.3
[hosts.slow]
count = 4
step_ms = 5
memory_gb_per_s = 8
[network]
latency_us = 50
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

/// Two epochs of 23 samples per worker, in batches of 2.
inline SimulatedRun run_for(const strategies::Variant& variant, std::uint32_t workers, std::uint32_t servers) {
  const auto shape = strategies::fitted(variant, {.workers = workers, .servers = servers});
  SimulatedRun run;
  run.strategy = strategies::made_for(variant, shape);
  run.needs = run.strategy->needs();
  run.workers = shape.workers;
  run.servers = run.needs.servers ? shape.servers : 0;
  run.leases = {.epoch_size = 23 * std::int64_t{run.workers},
                .epochs = 2,
                .batches = std::vector<std::int64_t>(run.workers, 2),
                .sharing = run.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand};
  run.train.optimizer = variant.name == "eamsgd" ? "nesterov" : "sgd";
  run.floats = 100'000;
  return run;
}

}  // namespace troupe::sim
