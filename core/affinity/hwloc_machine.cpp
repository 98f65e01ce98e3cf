#include "core/affinity/hwloc_machine.hpp"

#include <memory>
#include <utility>

namespace troupe::core {
namespace {

Cpus cpus_of(hwloc_const_bitmap_t set) {
  Cpus cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu))
    cpus.push_back(static_cast<unsigned>(cpu));
  return cpus;
}

Result<Machine> read() {
  hwloc_topology_t made = nullptr;
  const auto failed = [] { return fail(Errc::io, "hwloc cannot read this machine's topology"); };
  if (hwloc_topology_init(&made) != 0) return failed();
  const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> topology(made, hwloc_topology_destroy);
  // All cores: which of them a process may use is asked of the kernel, because processes of one host may differ in it.
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_NONE);  // devices take long and do not matter
  if (hwloc_topology_load(made) != 0) return failed();
  return machine_of(made);
}

}  // namespace

Result<Machine> machine_of(hwloc_topology_t topology) {
  Machine machine;
  // A machine may hide its cores: then each processor counts as one.
  const auto kind = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (auto* core = hwloc_get_next_obj_by_type(topology, kind, nullptr); core != nullptr;
       core = hwloc_get_next_obj_by_type(topology, kind, core)) {
    const int node = hwloc_bitmap_first(core->nodeset);
    const auto* cache = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L3CACHE, core);
    machine.cores.push_back({.cpus = cpus_of(core->cpuset),
                             .cache = cache != nullptr ? cache->logical_index : 0,
                             .node = node >= 0 ? static_cast<unsigned>(node) : 0});
  }
  if (machine.cores.empty()) return fail(Errc::io, "hwloc finds no processor on this machine");
  return machine;
}

const Result<Machine>& this_machine() {
  static const Result<Machine> machine = read();
  return machine;
}

}  // namespace troupe::core
