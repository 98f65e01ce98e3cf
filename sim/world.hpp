/// What the members of a simulated company share, and the members. Owned by Simulation; one thread.
#pragma once

#include <optional>

#include "sim/collectives.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/cluster/network.hpp"
#include "sim/plan.hpp"
#include "sim/step_times.hpp"
#include "strategies/host/peer_graph.hpp"

namespace troupe::sim {

class Coordinator;
class Failures;
class Gradients;
class Server;
class Worker;

struct World {
  World(const Plan& plan, const Cluster& cluster);
  ~World();

  const Plan& plan;
  const Cluster& cluster;
  EventQueue queue;
  Network network;
  Collectives collectives;
  StepClock steps;
  strategies::PeerGraph peers;
  strategies::Membership membership;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::unique_ptr<Server>> servers;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Failures> failures;
  Gradients* gradients = nullptr;    // none: numbers are not computed
  std::optional<core::Error> error;  // the first one: the simulation ends with it
  double lost_weight = 0;            ///< of mail to the dead
  std::uint64_t letters = 0;         ///< on their way between workers

  /// Notes the error of a result that has one; false then.
  bool good(core::Result<void> result);
  /// Floats of the slice that `shards` are cut from.
  [[nodiscard]] std::uint64_t floats(strategies::Shards shards) const;
  /// Floats of bucket `bucket`; all of them when it is negative.
  [[nodiscard]] std::uint64_t bucket_floats(int bucket) const;
  /// Of the slice that a shard has.
  [[nodiscard]] std::uint64_t shard_floats(strategies::ShardId shard) const;
};

}  // namespace troupe::sim
