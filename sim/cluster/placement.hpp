/// Places every member of the run: the cluster file's machines, resolved for one run. Pure functions.
#pragma once

#include "sim/cluster/cluster_file.hpp"

namespace troupe::sim {

/// The members to place, and their step times where the file does not give them.
struct Placing {
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;
  std::string model{};                  ///< required model of profiles; empty: any
  std::vector<std::int64_t> batches{};  ///< required batch of profiles, per worker; empty: any
  std::int64_t micro_batches =
      1;                ///< parts of a batch: a profile is of one part, and a step takes so many of its times
  double image_ms = 0;  ///< > 0: replaces the hosts' step times
  std::vector<StepTimes> recorded{};  ///< not empty: replaces the hosts' step times; worker w has entry w mod size
  std::string placement{};            ///< servers.placement if the file does not set it; empty: its default
};

/// Workers fill hosts one after the other, in file order. Colocated shards go to the workers' hosts in turn, those with the fewest
/// workers first. Dedicated shards go to the hosts of [servers] hosts, which then hold no worker.
/// Errc::config: more workers than devices, hosts without step times, an invalid profile or one of another model or batch, no hosts for
/// dedicated servers, faults of workers that do not exist.
[[nodiscard]] core::Result<Cluster> place(const ClusterFile& file, const Placing& placing);

}  // namespace troupe::sim
