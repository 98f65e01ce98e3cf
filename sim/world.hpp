/// The members of a simulated run and the state that they share. Owned by Simulation; one thread.
#pragma once

#include <optional>

#include "sim/cluster/network.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/exchange/collectives.hpp"
#include "sim/simulated_run.hpp"
#include "sim/step_time_model.hpp"
#include "strategies/host/peer_graph.hpp"

namespace troupe::sim {

class Coordinator;
class Failures;
class Gradients;
class Server;
class Worker;

struct World {
  World(const SimulatedRun& run, const Cluster& cluster);
  ~World();

  const SimulatedRun& run;
  const Cluster& cluster;
  EventQueue queue;
  Network network;
  Collectives collectives;
  StepTimeModel steps;
  strategies::PeerGraph peers;
  strategies::Membership membership;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::unique_ptr<Server>> servers;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Failures> failures;
  Gradients* gradients = nullptr;    // null: no gradients are computed
  std::optional<core::Error> error;  // the first error; it ends the simulation
  double lost_weight = 0;            ///< of lost members, and of peer messages to them
  std::uint64_t peer_messages = 0;   ///< in flight between workers

  /// Records the result's error, if any; returns false then.
  bool good(core::Result<void> result);
  /// Floats of the slices of `shards`.
  [[nodiscard]] std::uint64_t floats(strategies::Shards shards) const;
  /// Floats of bucket `bucket`; of the whole vector when it is negative.
  [[nodiscard]] std::uint64_t bucket_floats(int bucket) const;
  /// Floats of a shard's slice.
  [[nodiscard]] std::uint64_t shard_floats(strategies::ShardId shard) const;
};

}  // namespace troupe::sim
