/// Machines for tests, numbered as Linux does: the second hardware threads of all cores follow the first ones.
#pragma once

#include "core/affinity/machine.hpp"

namespace troupe::core::testing {

[[nodiscard]] inline Machine machine(unsigned nodes, unsigned caches_per_node, unsigned cores_per_cache,
                                     unsigned threads_per_core) {
  Machine machine;
  const unsigned cores = nodes * caches_per_node * cores_per_cache;
  for (unsigned core = 0; core < cores; ++core) {
    Core one{.cpus = {}, .cache = core / cores_per_cache, .node = core / cores_per_cache / caches_per_node};
    for (unsigned thread = 0; thread < threads_per_core; ++thread) one.cpus.push_back(core + thread * cores);
    machine.cores.push_back(one);
  }
  return machine;
}

}  // namespace troupe::core::testing
