/// A whole run in virtual time, in one thread: the hosts and rules of real runs over ports that guarantee their contract and no more.
/// Requests of one worker to one shard keep their order; all other messages may overtake each other. Lent memory is guarded (memory.hpp),
/// unwritten memory is NaN, and a run that does not come to rest throws.
///
/// The coordinator is that of real runs (coordinator.hpp): it pauses training between epochs and for newcomers. A newcomer takes the
/// lost member's rank, with a new worker, a new host and a new address. The run is a pure function of (strategy, options).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/explore/world/collectives.hpp"
#include "sim/explore/world/coordinator.hpp"
#include "sim/explore/world/fault.hpp"
#include "sim/explore/world/invariant.hpp"
#include "sim/explore/world/network.hpp"
#include "sim/explore/world/problem.hpp"
#include "sim/explore/world/queue.hpp"
#include "sim/explore/world/server.hpp"
#include "sim/explore/world/trace.hpp"
#include "sim/explore/world/words.hpp"
#include "sim/explore/world/worker.hpp"
#include "strategies/host/peer_graph.hpp"

namespace troupe::explore {

struct VirtualRunOptions {
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::size_t floats = 80;   // a multiple of 16
  Step steps = 20;           // per worker; on average where faster workers take more; a multiple of epochs
  std::uint32_t epochs = 1;  // training pauses between two of them
  std::uint64_t seed = 1;
  Delays delays = Delays::even;
  Carriage carriage = Carriage::in_place;
  core::OptimizerStep optimizer{.lr = 0.05F};
  int buckets = 3;  // 0: the backend reports none
  double noise = 0.1;
  std::vector<double> slowdown{};  // factor on a step, per worker; empty: 1
  std::vector<Loss> losses{};
  double peer_message_loss = 0;           // probability that a peer message is lost
  std::uint32_t peer_slots = kPeerSlots;  // per worker, for peer messages: a limit on its senders
  std::vector<Fault> faults{};            // in addition to slowdown and losses
  std::vector<Invariant*> invariants{};   // outlive the run
  ServerKernelWatch on_server_kernel{};
  std::function<void(const VirtualRun&)> after_event{};
};

class VirtualRun {
 public:
  /// `strategy` outlives the run if members are replaced.
  VirtualRun(const Strategy& strategy, VirtualRunOptions options);

  /// Runs until no event is left. Throws Violation when a worker or request gets no answer, or the run does not come to rest.
  void execute();

  [[nodiscard]] const VirtualRunOptions& options() const noexcept { return options_; }
  [[nodiscard]] const QuadraticProblem& quadratic() const noexcept { return quadratic_; }
  [[nodiscard]] const PeerGraph& peers() const noexcept { return peers_; }
  [[nodiscard]] std::uint32_t workers() const noexcept { return options_.workers; }
  [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
  [[nodiscard]] std::uint64_t losses() const noexcept { return lost_; }  ///< members lost so far
  [[nodiscard]] std::uint64_t newcomers() const noexcept { return former_.size(); }
  /// The latest worker of this rank.
  [[nodiscard]] Worker& worker(WorkerId id) { return *workers_.at(id); }
  [[nodiscard]] const Worker& worker(WorkerId id) const { return *workers_.at(id); }
  [[nodiscard]] Server& server(ShardId id) { return *servers_.at(id); }
  [[nodiscard]] const Server& server(ShardId id) const { return *servers_.at(id); }
  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  [[nodiscard]] const Trace& trace() const noexcept { return trace_; }
  [[nodiscard]] ShardId shards() const noexcept { return static_cast<ShardId>(servers_.size()); }
  [[nodiscard]] std::vector<float> center() const;  ///< all shards in order
  [[nodiscard]] const data::LeaseScheduler& leases() const noexcept { return coordinator_.leases(); }
  [[nodiscard]] std::uint64_t leases_done() const noexcept { return leases_done_; }  ///< without those passed over
  /// Σ a over living workers, peer messages in flight and lost weight.
  [[nodiscard]] double weight() const noexcept;
  /// Of peer messages in flight.
  [[nodiscard]] double peer_message_weight() const noexcept { return peer_message_weight_; }
  [[nodiscard]] double lost_weight() const noexcept { return lost_weight_; }  ///< of lost peer messages and members
  [[nodiscard]] std::uint64_t peer_messages_lost() const noexcept {
    return peer_messages_lost_;
  }  ///< between living members
  [[nodiscard]] const core::Kernels& kernels() const noexcept { return core::reference_kernels(); }

  [[nodiscard]] Duration now() const noexcept { return queue_.now(); }

  // For members.
  [[nodiscard]] EventQueue& queue() noexcept { return queue_; }
  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] Collectives& collectives() noexcept { return collectives_; }
  [[nodiscard]] Coordinator& coordinator() noexcept { return coordinator_; }
  void lease_done() noexcept { ++leases_done_; }
  [[nodiscard]] bool in_step() const noexcept { return in_step_; }
  [[nodiscard]] Duration step_time(WorkerId worker, Step step) const;
  /// The end of the member's pause; none when it is not paused.
  [[nodiscard]] std::optional<Duration> stands_still(bool shard, std::uint32_t member) const;
  [[nodiscard]] bool next_peer_message_is_lost();
  /// True if a BadPush names the nth vector that is pushed to the shard.
  [[nodiscard]] bool is_bad(ShardId shard, std::uint64_t nth) const;
  void peer_message_sent(double weight) noexcept { peer_message_weight_ += weight, ++peer_messages_in_flight_; }
  void peer_message_arrived(double weight) noexcept { peer_message_weight_ -= weight, --peer_messages_in_flight_; }
  void peer_message_lost() noexcept { ++peer_messages_lost_; }
  void lose_weight(double weight) noexcept { lost_weight_ += weight; }

  // For the coordinator.
  void announce(const Membership& membership);  ///< to all members and shards
  void dismiss();
  void enter(WorkerId newcomer, Step first);
  [[nodiscard]] bool all_at_rest() const;
  /// All living workers are between two steps, and no request is open.
  [[nodiscard]] bool all_stand() const;
  [[nodiscard]] std::uint64_t peer_messages_in_flight() const noexcept { return peer_messages_in_flight_; }
  [[nodiscard]] bool shards_know_members() const noexcept { return news_to_shards_ == 0; }

 private:
  void lose(const Loss& loss);
  void lose_who_exchanges();
  void require_rest() const;

  const Strategy& strategy_;
  VirtualRunOptions options_;
  bool in_step_;
  QuadraticProblem quadratic_;
  Trace trace_;
  EventQueue queue_;
  Network network_;
  Collectives collectives_;
  PeerGraph peers_;
  Coordinator coordinator_;
  Membership membership_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by rank
  std::vector<std::unique_ptr<Worker>> former_;   // lost, and replaced: memory that they lent stays
  std::vector<std::uint32_t> lives_;              // by rank: how often it was lost
  std::uint32_t next_address_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Loss> losses_to_come_;
  std::uint64_t lost_ = 0;
  std::uint64_t peer_messages_ = 0;
  std::uint64_t peer_messages_lost_ = 0;
  std::uint64_t leases_done_ = 0;
  std::uint64_t peer_messages_in_flight_ = 0;
  std::uint64_t news_to_shards_ = 0;  // memberships in flight
  double peer_message_weight_ = 0;    // in flight
  double lost_weight_ = 0;
};

}  // namespace troupe::explore
