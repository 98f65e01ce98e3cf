/// A whole run in virtual time, in one thread: the hosts and rules of real runs over ports that guarantee their contract and no more.
/// Requests of one worker to one shard keep their order; all other messages may overtake each other. Lent memory is guarded (memory.hpp),
/// unwritten memory is NaN, and a run that does not come to rest throws.
///
/// The cluster plays the coordinator: it grants leases, removes a stopped member from the membership, and admits newcomers as
/// Needs::takes_newcomers allows. The run is a pure function of (strategy, options).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/explore/world/collectives.hpp"
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

struct ClusterOptions {
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::size_t floats = 80;  // a multiple of 16
  Step steps = 20;          // per worker; on average where faster workers take more
  double epochs = 1;        // covered by these steps
  std::uint64_t seed = 1;
  Delays delays = Delays::even;
  Carriage carriage = Carriage::in_place;
  core::OptimizerStep optimizer{.lr = 0.05F};
  int buckets = 3;  // 0: the backend reports none
  double noise = 0.1;
  std::vector<double> slowdown{};  // factor on a step, per worker; empty: 1
  std::vector<Loss> losses{};
  double mail_loss = 0;                   // probability that a peer message is lost
  std::uint32_t peer_slots = kPeerSlots;  // per worker, for peer messages: a limit on its senders
  std::vector<Fault> faults{};            // in addition to slowdown and losses
  std::vector<Invariant*> invariants{};   // outlive the cluster
  ServerKernelWatch on_server_kernel{};
  std::function<void(const Cluster&)> after_event{};
};

class Cluster {
 public:
  /// `strategy` outlives the cluster if members are replaced.
  Cluster(const Strategy& strategy, ClusterOptions options);

  /// Runs until no event is left. Throws Violation when a worker or request gets no answer, or the run does not come to rest.
  void run();

  [[nodiscard]] const ClusterOptions& options() const noexcept { return options_; }
  [[nodiscard]] const QuadraticProblem& quadratic() const noexcept { return quadratic_; }
  [[nodiscard]] const PeerGraph& peers() const noexcept { return peers_; }
  [[nodiscard]] std::uint32_t workers() const noexcept { return next_worker_; }  ///< newcomers included
  [[nodiscard]] bool has(WorkerId id) const { return workers_.contains(id); }    ///< false for an expected newcomer
  [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
  [[nodiscard]] std::uint64_t losses() const noexcept { return lost_; }  ///< members lost so far
  [[nodiscard]] Worker& worker(WorkerId id) { return *workers_.at(id); }
  [[nodiscard]] const Worker& worker(WorkerId id) const { return *workers_.at(id); }
  [[nodiscard]] Server& server(ShardId id) { return *servers_.at(id); }
  [[nodiscard]] const Server& server(ShardId id) const { return *servers_.at(id); }
  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  [[nodiscard]] const Trace& trace() const noexcept { return trace_; }
  [[nodiscard]] ShardId shards() const noexcept { return static_cast<ShardId>(servers_.size()); }
  [[nodiscard]] std::vector<float> center() const;  ///< all shards in order
  [[nodiscard]] std::uint64_t leases_done() const noexcept { return leases_done_; }
  /// Σ a over living workers, peer messages in flight and lost weight.
  [[nodiscard]] double weight() const noexcept;
  [[nodiscard]] double mail_weight() const noexcept { return mail_weight_; }  ///< of peer messages in flight
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
  [[nodiscard]] std::optional<std::uint64_t> take_lease(WorkerId worker, Step step);
  /// True while a refused lease may still come: its holder may be lost, or, in step, a newcomer is expected.
  [[nodiscard]] bool leases_may_return() const noexcept;
  /// Calls `then` when the result of leases_may_return() or take_lease() may have changed.
  void wait_for_lease(EventQueue::Action then) { waiting_for_lease_.push_back(std::move(then)); }
  void lease_done(WorkerId worker);
  [[nodiscard]] bool in_step() const noexcept { return in_step_; }
  [[nodiscard]] double epoch(std::uint64_t lease) const noexcept;
  [[nodiscard]] Duration step_time(WorkerId worker, Step step) const;
  /// The end of the member's pause; none when it is not paused.
  [[nodiscard]] std::optional<Duration> stands_still(bool shard, std::uint32_t member) const;
  [[nodiscard]] bool next_peer_message_is_lost();
  /// True if a BadPush names the nth vector that is pushed to the shard.
  [[nodiscard]] bool is_bad(ShardId shard, std::uint64_t nth) const;
  void leave(WorkerId worker);
  void mail_sent(double weight) noexcept { mail_weight_ += weight; }
  void mail_arrived(double weight) noexcept { mail_weight_ -= weight; }
  void peer_message_lost() noexcept { ++peer_messages_lost_; }
  void lose_weight(double weight) noexcept { lost_weight_ += weight; }

 private:
  void announce(const EventQueue::Action& at_every_shard);
  void lose(const Loss& loss);
  void lose_who_exchanges();
  void replace();
  void admit();
  void admit_at_boundary();
  void enter(WorkerId newcomer);
  void leases_changed();
  void require_rest() const;

  const Strategy& strategy_;
  ClusterOptions options_;
  bool in_step_;
  QuadraticProblem quadratic_;
  Trace trace_;
  EventQueue queue_;
  Network network_;
  Collectives collectives_;
  PeerGraph peers_;
  Membership membership_;
  std::map<WorkerId, std::unique_ptr<Worker>> workers_;
  std::uint32_t next_worker_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::uint64_t next_lease_ = 0;
  Step frontier_ = 0;           // in step: the first step without a granted lease
  std::uint64_t expected_ = 0;  // in step: newcomers that wait until all workers reach the frontier
  bool admitting_ = false;      // the first of them has been announced
  std::deque<std::uint64_t> returned_leases_;
  std::map<WorkerId, std::uint64_t> held_leases_;
  std::vector<EventQueue::Action> waiting_for_lease_;
  std::vector<Loss> losses_to_come_;
  std::uint64_t lost_ = 0;
  std::uint64_t peer_messages_ = 0;
  std::uint64_t peer_messages_lost_ = 0;
  std::uint64_t leases_done_ = 0;
  double mail_weight_ = 0;  // in flight
  double lost_weight_ = 0;
};

}  // namespace troupe::explore
