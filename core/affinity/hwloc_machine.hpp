/// A machine as hwloc describes it. Only in builds with hwloc.
#pragma once

#include <hwloc.h>

#include "core/affinity/machine.hpp"

namespace troupe::core {

/// `topology` is loaded. Also of synthetic topologies. Errc::io: it has no processors.
[[nodiscard]] Result<Machine> machine_of(hwloc_topology_t topology);

}  // namespace troupe::core
