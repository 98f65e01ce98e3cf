/// A whole run in virtual time, in one thread: the hosts and rules of real runs over ports whose messages, steps and kernels take the
/// time that a cluster description gives. A pure function of (run, cluster): the same inputs give the same result, byte for byte.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "data/order/lease.hpp"
#include "sim/simulation_result.hpp"
#include "sim/world.hpp"

namespace troupe::sim {

/// How far a run is.
struct SimulatedMoment {
  Duration at{0};           ///< virtual, with pauses
  double epochs = 0;        ///< done, with the fraction of the current one
  std::uint64_t steps = 0;  ///< of all workers
};

struct SimulationOptions {
  Duration pause{0};               ///< between two epochs, for evaluation and checkpoint
  Gradients* gradients = nullptr;  ///< outlives the simulation; null: no gradients are computed
  std::function<void(double done)>
      progress{};  ///< called now and then with the share of the run that is done; null: not called
  std::function<bool(const SimulatedMoment&)>
      watch{};  ///< called often; false ends the simulation with Errc::interrupted; null: not called
};

class Simulation {
 public:
  /// REQUIRES valid leases in the run (data::LeaseScheduler::create) and a place in the cluster for every member. `run` and `cluster`
  /// outlive the simulation.
  Simulation(const SimulatedRun& run, const Cluster& cluster, data::LeaseScheduler leases,
             SimulationOptions options = {});

  /// Runs until the last worker has handed in its leases. Call once. Errc::peer_lost: no worker is left. config: virtual time exceeds
  /// its range. internal: deadlock; names the worker that waits. With gradients also their errors.
  [[nodiscard]] core::Result<SimulationResult> run();

 private:
  void happen(const Event& event);
  void deliver(std::uint32_t packet);
  void end_collective(std::uint32_t collective, std::uint64_t generation);
  [[nodiscard]] bool at_rest() const;
  [[nodiscard]] bool all_lost() const;
  [[nodiscard]] core::Error stuck() const;
  [[nodiscard]] SimulationResult result() const;
  void tell() const;
  void be_watched();

  World world_;
  std::function<void(double)> progress_;
  std::function<bool(const SimulatedMoment&)> watch_;
};

}  // namespace troupe::sim
