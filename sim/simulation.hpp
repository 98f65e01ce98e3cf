/// A whole company in virtual time, in one thread: the hosts and halves that real runs use, over ports whose messages, steps and
/// kernels take the time that a cluster description says. A pure function of (plan, cluster): the same inputs give the same
/// outcome, byte for byte.
#pragma once

#include <memory>
#include <vector>

#include "data/lease.hpp"
#include "sim/outcome.hpp"
#include "sim/world.hpp"

namespace troupe::sim {

struct SimulationOptions {
  Duration pause{0};               ///< between two epochs: evaluation and checkpoint
  Gradients* gradients = nullptr;  ///< outlives the simulation; null: numbers are not computed
};

class Simulation {
 public:
  /// The plan's leases must be good (data::LeaseBook::create), the cluster have a place for every member. `plan` and `cluster`
  /// outlive the simulation.
  Simulation(const Plan& plan, const Cluster& cluster, data::LeaseBook book, SimulationOptions options = {});

  /// Until the last worker has handed in what it held. Once. Errc::peer_lost when no worker is left, or when they are lost faster than any
  /// step ends; config when virtual time passes its range; internal when the company does not come to its end otherwise: names who waits. With gradients their errors too.
  [[nodiscard]] core::Result<Outcome> run();

 private:
  void happen(const Event& event);
  void deliver(std::uint32_t packet);
  void end_collective(std::uint32_t meeting, std::uint64_t era);
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool all_lost() const;
  [[nodiscard]] core::Error stuck() const;
  [[nodiscard]] Outcome outcome() const;

  World world_;
};

}  // namespace troupe::sim
