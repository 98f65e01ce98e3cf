/// A place for every member of the company: the cluster file's machines, resolved for one run. Pure functions.
#pragma once

#include "sim/cluster_file.hpp"

namespace troupe::sim {

/// Workers fill hosts one after the other, in the order of the file. Colocated shards sit on the workers' hosts in turn, dedicated
/// ones on the hosts of [servers] hosts, where no worker is then. `image_ms` > 0 takes the place of the hosts' step times.
/// Errc::config: more workers than devices, hosts without step times, no hosts for dedicated servers. Errc::io, data: a profile.
[[nodiscard]] core::Result<Cluster> place(const ClusterFile& file, std::uint32_t workers, std::uint32_t servers,
                                          double image_ms = 0);

}  // namespace troupe::sim
