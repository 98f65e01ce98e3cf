/// Hosts that die and come back. A host's death takes its workers; shards survive. (A real run that loses a shard restarts from its last
/// checkpoint; that is not simulated.) After the detection time the members know: leases return, servers and workers receive the new
/// membership. Members that share collectives with a lost worker restart (GroupPort's contract) at the newest step that one of them
/// completed, with its state; they give up batches of older steps. Where a strategy takes newcomers (Needs::takes_newcomers), lost
/// workers return as newcomers with the centre's parameters: at once where leases are granted on demand; in step, when an epoch begins
/// and no packet is in flight. One thread.
#pragma once

#include <span>
#include <vector>

#include "sim/world.hpp"

namespace troupe::sim {

class Failures {
 public:
  explicit Failures(World& world);

  void begin();                                     ///< plans the deaths
  void host_dies(HostId host, std::uint64_t what);  ///< event
  void loss_noticed(HostId host);                   ///< event
  void host_returns(HostId host);                   ///< event
  /// Call when an epoch is over or no member is left: workers that waited for this rejoin. False: packets are still in flight and no
  /// worker has rejoined; call again when none is.
  [[nodiscard]] bool admit();

  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }  ///< workers
  [[nodiscard]] std::uint64_t returned() const noexcept { return returned_; }
  /// Planned deaths. If the queue holds nothing else, the run is deadlocked.
  [[nodiscard]] std::size_t planned() const noexcept { return planned_; }

 private:
  struct HostState {
    std::vector<strategies::WorkerId> workers;
    std::uint64_t deaths = 0;
    bool dead = false;
  };
  void plan_next(HostId host);
  void tell_membership();
  void begin_anew(const std::vector<strategies::WorkerId>& lost);
  void require_progress();
  void abandon(std::span<const strategies::WorkerId> anew, const std::vector<strategies::WorkerId>& lost);
  void rejoin(std::vector<strategies::WorkerId> workers);
  [[nodiscard]] bool can_return() const noexcept;

  World& world_;
  std::vector<HostState> hosts_;
  std::vector<strategies::WorkerId> waiting_;  // for the next epoch
  std::size_t planned_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t fruitless_ = 0;  // deaths since the last finished lease
  std::uint64_t leases_done_ = 0;
};

}  // namespace troupe::sim
