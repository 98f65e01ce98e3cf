/// Hosts that die and come back. A host's death takes its workers; shards survive. (A real run that loses a shard restarts from its last
/// checkpoint; that is not simulated.) After the detection time the members know: leases return, servers and workers receive the new
/// membership. Members that share collectives with a lost worker restart (GroupPort's contract) at the newest step that one of them
/// completed, with its state; they give up batches of older steps. (A real run ends here, and is resumed.) Where a strategy takes
/// newcomers (Needs::takes_newcomers), lost workers come back, and the coordinator admits them as it does in a real run. One thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/world.hpp"

namespace troupe::sim {

class Failures {
 public:
  explicit Failures(World& world);

  void begin();                                     ///< schedules the deaths
  void host_dies(HostId host, std::uint64_t what);  ///< event
  void loss_noticed(HostId host);                   ///< event
  void host_returns(HostId host);                   ///< event
  /// World::membership has changed. `lost`: the worker that is no member any more.
  void membership_changed(std::optional<strategies::WorkerId> lost);
  /// The worker is a new member, whose WorkerHost begins at step `first`.
  void rejoined(strategies::WorkerId worker, strategies::Step first);
  /// The worker's machine is up.
  [[nodiscard]] bool is_back(strategies::WorkerId worker) const;
  /// How often its host has died.
  [[nodiscard]] std::uint64_t deaths(strategies::WorkerId worker) const;

  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }  ///< workers
  [[nodiscard]] std::uint64_t returned() const noexcept { return returned_; }
  /// Scheduled deaths. If the queue holds nothing else, the run is deadlocked.
  [[nodiscard]] std::size_t scheduled() const noexcept { return scheduled_; }

 private:
  struct HostState {
    std::vector<strategies::WorkerId> workers;
    std::uint64_t deaths = 0;
    bool dead = false;
  };
  void schedule_next(HostId host);
  void begin_anew(strategies::WorkerId lost);
  void abandon(std::span<const strategies::WorkerId> anew, strategies::WorkerId lost);
  [[nodiscard]] bool can_return() const noexcept;

  World& world_;
  std::vector<HostState> hosts_;
  std::size_t scheduled_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t returned_ = 0;
};

}  // namespace troupe::sim
