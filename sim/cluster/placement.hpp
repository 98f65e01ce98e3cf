/// A place for every member of the company: the cluster file's machines, resolved for one run. Pure functions.
#pragma once

#include "sim/cluster/cluster_file.hpp"

namespace troupe::sim {

/// Who is to have a place, and how long their steps take where the file does not say it.
struct Placing {
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;
  std::string model{};                  ///< that profiles must be of; empty: any
  std::vector<std::int64_t> batches{};  ///< per worker, that profiles must be of; none: any
  double image_ms = 0;                  ///< > 0: takes the place of the hosts' step times
  std::vector<StepTimes> recorded{};    ///< not empty: so do these; worker w has that of w mod size
  std::string placement{};              ///< servers.placement where the file does not set it; empty: its default
};

/// Workers fill hosts one after the other, in the order of the file. Colocated shards sit on the workers' hosts in turn, those
/// with the fewest workers first; dedicated ones on the hosts of [servers] hosts, where no worker is then.
/// Errc::config: more workers than devices, hosts without step times, a profile that is none or of something else, no hosts for
/// dedicated servers, faults of workers that are not there.
[[nodiscard]] core::Result<Cluster> place(const ClusterFile& file, const Placing& placing);

}  // namespace troupe::sim
