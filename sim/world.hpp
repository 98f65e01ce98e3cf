/// What the members of a simulated company share. Owned by Simulation; one thread.
#pragma once

#include "sim/event_queue.hpp"
#include "sim/network.hpp"
#include "sim/plan.hpp"
#include "sim/step_times.hpp"
#include "transport/reduce.hpp"

namespace troupe::sim {

class Coordinator;

struct World {
  World(const Plan& plan, const Cluster& cluster)
      : plan(plan), cluster(cluster), network(queue, cluster), steps(plan, cluster) {}
  const Plan& plan;
  const Cluster& cluster;
  EventQueue queue;
  Network network;
  StepClock steps;
  strategies::Membership membership;
  Coordinator* coordinator = nullptr;  // set by Simulation before anything happens

  /// Floats that a call works on: a slice of the parameters.
  [[nodiscard]] std::uint64_t floats(strategies::Shards shards) const noexcept {
    if (shards.all()) return plan.floats;
    const auto last = transport::slice_of(plan.floats, shards.first + shards.count - 1, plan.servers);
    return last.offset + last.count - transport::slice_of(plan.floats, shards.first, plan.servers).offset;
  }
  [[nodiscard]] std::uint64_t shard_bytes(strategies::ShardId shard) const noexcept {
    return transport::slice_of(plan.floats, shard, plan.servers).count * plan.wire_bytes;
  }
};

}  // namespace troupe::sim
