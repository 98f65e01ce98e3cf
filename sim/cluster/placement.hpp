/// Places every member of the run: the cluster file's machines, resolved for one run. Pure functions.
#pragma once

#include "sim/cluster/cluster_file.hpp"
#include "sim/cluster/recorded.hpp"

namespace troupe::sim {

/// The members to place, and their step times where the file does not give them.
struct Placing {
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;
  std::string model{};           ///< of the run: the hosts' step times must be of it; empty: any
  std::uint64_t parameters = 0;  ///< of the run's model; profiles that know theirs must have as many; 0: not checked
  std::vector<std::int64_t> batches{};  ///< required batch of profiles, per worker; empty: any
  std::int64_t micro_batches =
      1;                ///< parts of a batch: a profile is of one part, and a step takes so many of its times
  double image_ms = 0;  ///< > 0: replaces the hosts' step times
  std::vector<StepTimes> recorded{};  ///< not empty: replaces the hosts' step times; worker w has entry w mod size
  std::string placement{};            ///< servers.placement if the file does not set it; empty: its default
};

/// Workers fill hosts one after the other, in file order. Colocated shards go to the workers' hosts in turn, those with the fewest
/// workers first. Dedicated shards go to the hosts of [servers] hosts, which then hold no worker.
/// Errc::config: more workers than devices, hosts without step times or with those of another model, an invalid profile or one of another
/// model or batch, no hosts for dedicated servers, faults of workers that do not exist.
[[nodiscard]] core::Result<Cluster> place(const ClusterFile& file, const Placing& placing);

/// Errc::config: `profile` is not of this model and batch. `where` names it in the message.
[[nodiscard]] core::Result<void> check_profile(const StepProfile& profile, const Placing& placing, std::int64_t batch,
                                               const std::string& where);

/// Where the step times of hosts of `kind` come from, for people: "hosts.node.image_ms of lan.toml, for lenet". REQUIRES: the file gives
/// them, not Placing.
[[nodiscard]] std::string source_of_times(const ClusterFile& file, std::size_t kind);

}  // namespace troupe::sim
