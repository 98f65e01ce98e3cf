/// Which cores the workers of one host compute on. Pure: every process of the host computes the same assignment and takes its own part, so
/// that their parts are disjoint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/affinity/machine.hpp"

namespace troupe::core {

struct Assignment {
  std::vector<Cpus> workers;  // by worker; empty: none is pinned
  Cpus helpers;               // for decoding: cores that no worker has; empty: too few are left to be faster there
  std::string reason;         // why no worker is pinned; empty: all are
};

/// Gives each worker as many cores as it has threads, with all their hardware threads that are `allowed`. Where cores are too few for all
/// workers, a worker gets hardware threads instead; where those are too few as well, no worker is pinned.
///
/// Workers are spread over memory nodes, within a node over caches, and a worker's cores share cache and node where they can. Neighbouring
/// workers with equally many threads are neighbours on the machine.
///
/// `allowed`: of this process. `threads`: of all workers on the host, in an order that its processes agree on, each > 0. `decoders`: threads
/// that decode for all these workers together.
[[nodiscard]] Assignment assign(const Machine& machine, const Cpus& allowed, std::span<const unsigned> threads,
                                std::size_t decoders);

/// The memory nodes of these cpus, ascending.
[[nodiscard]] std::vector<unsigned> memory_nodes(const Machine& machine, const Cpus& cpus);

/// "worker 3 on cpus 4-5", and where the machine has several memory nodes " (memory node 1)".
[[nodiscard]] std::string describe(const Machine& machine, std::size_t worker, const Cpus& cpus);

}  // namespace troupe::core
