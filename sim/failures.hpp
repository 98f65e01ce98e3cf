/// Hosts that die and come back. A death takes the workers of the host; shards are not lost with it (a real run goes on from its last
/// checkpoint then, which is not simulated). After the time of detection the company knows: leases return, servers and workers hear
/// of the new membership, and whoever shares collectives with a lost member begins anew (GroupPort's contract): at the newest step
/// that one of them completed, with that one's state; batches of older steps are given up. Where a strategy
/// takes newcomers (Needs::takes_newcomers) lost ones come back as such with the centre's parameters: at once where leases come on
/// demand, in step when an epoch begins and nothing is on its way. One thread.
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
  /// An epoch is over, or nobody is left: those that had to wait for that are back. False: something is on its way still, so that
  /// they are not; to be called again when nothing is.
  [[nodiscard]] bool admit();

  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }  ///< workers
  [[nodiscard]] std::uint64_t returned() const noexcept { return returned_; }
  /// Deaths that are planned: a company that waits for nothing else waits for ever.
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
  std::uint64_t fruitless_ = 0;  // deaths since a lease was finished
  std::uint64_t leases_done_ = 0;
};

}  // namespace troupe::sim
