/// A whole company in virtual time, in one thread: the hosts and halves that real runs use, over ports that keep their
/// contract to the letter and no further. Requests of one worker to one shard keep their order; everything else may overtake.
/// Lent memory is guarded (memory.hpp), what nobody wrote is NaN, and a run that does not come to rest is an exception.
///
/// The cluster plays the coordinator: it hands out leases, takes a member that has stopped out of the membership, and lets newcomers
/// in as Needs::takes_newcomers says.
/// The whole run is a pure function of (strategy, options).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/explore/world/collectives.hpp"
#include "sim/explore/world/invariant.hpp"
#include "sim/explore/world/irregularity.hpp"
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
  Step steps = 20;          // per worker, or on average where faster workers take more
  double epochs = 1;        // that these steps are
  std::uint64_t seed = 1;
  Delays delays = Delays::even;
  Carriage carriage = Carriage::in_place;
  core::OptimizerStep optimizer{.lr = 0.05F};
  int buckets = 3;  // 0: a backend that reports none
  double noise = 0.1;
  std::vector<double> slowdown{};  // of a step, per worker; none: 1
  std::vector<Loss> losses{};
  double mail_loss = 0;                        // probability that a peer's message never arrives
  std::uint32_t peer_slots = kPeerSlots;       // of a worker, for letters: fewer, and fewer may write to it
  std::vector<Irregularity> irregularities{};  // beside slowdown and losses
  std::vector<Invariant*> invariants{};        // outlive the cluster
  ServerKernelWatch on_server_kernel{};
  std::function<void(const Cluster&)> after_event{};
};

class Cluster {
 public:
  /// `strategy` outlives the cluster where members are replaced.
  Cluster(const Strategy& strategy, ClusterOptions options);

  /// Until nothing is left to happen. A Violation when a worker or a request never gets its answer, or nothing ever rests.
  void run();

  [[nodiscard]] const ClusterOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Bowl& bowl() const noexcept { return bowl_; }
  [[nodiscard]] const PeerGraph& peers() const noexcept { return peers_; }
  [[nodiscard]] std::uint32_t workers() const noexcept { return next_worker_; }  ///< who came later included
  [[nodiscard]] bool has(WorkerId id) const { return workers_.contains(id); }    ///< not one that is still expected
  [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
  [[nodiscard]] std::uint64_t losses() const noexcept { return lost_; }  ///< members lost so far
  [[nodiscard]] Worker& worker(WorkerId id) { return *workers_.at(id); }
  [[nodiscard]] const Worker& worker(WorkerId id) const { return *workers_.at(id); }
  [[nodiscard]] Server& server(ShardId id) { return *servers_.at(id); }
  [[nodiscard]] const Server& server(ShardId id) const { return *servers_.at(id); }
  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  [[nodiscard]] const Trace& trace() const noexcept { return trace_; }
  [[nodiscard]] ShardId shards() const noexcept { return static_cast<ShardId>(servers_.size()); }
  [[nodiscard]] std::vector<float> center() const;  ///< all shards, one after the other
  [[nodiscard]] std::uint64_t leases_done() const noexcept { return leases_done_; }
  /// Σ a over the living, the mail on its way and the ledger of what was lost.
  [[nodiscard]] double weight() const noexcept;
  [[nodiscard]] double mail_weight() const noexcept { return mail_weight_; }  ///< of mail that has not arrived
  [[nodiscard]] double lost_weight() const noexcept { return lost_weight_; }  ///< the ledger: of lost mail and members
  [[nodiscard]] std::uint64_t letters_lost() const noexcept { return letters_lost_; }  ///< between members that live
  [[nodiscard]] const core::Kernels& kernels() const noexcept { return core::reference_kernels(); }

  [[nodiscard]] Duration now() const noexcept { return queue_.now(); }

  // For members.
  [[nodiscard]] EventQueue& queue() noexcept { return queue_; }
  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] Collectives& collectives() noexcept { return collectives_; }
  [[nodiscard]] std::optional<std::uint64_t> take_lease(WorkerId worker, Step step);
  /// Someone who holds a lease may yet be lost.
  [[nodiscard]] bool leases_may_return() const noexcept;
  /// `then` is called when the answer to that, or to take_lease(), may be another one.
  void wait_for_lease(EventQueue::Action then) { waiting_for_lease_.push_back(std::move(then)); }
  void lease_done(WorkerId worker);
  [[nodiscard]] bool in_step() const noexcept { return in_step_; }
  [[nodiscard]] double epoch(std::uint64_t lease) const noexcept;
  [[nodiscard]] Duration step_time(WorkerId worker, Step step) const;
  /// Until when; nothing when it does not.
  [[nodiscard]] std::optional<Duration> stands_still(bool shard, std::uint32_t member) const;
  [[nodiscard]] bool next_letter_is_lost();
  /// A BadPush is the nth vector that is pushed to the shard.
  [[nodiscard]] bool is_bad(ShardId shard, std::uint64_t nth) const;
  void leave(WorkerId worker);
  void mail_sent(double weight) noexcept { mail_weight_ += weight; }
  void mail_arrived(double weight) noexcept { mail_weight_ -= weight; }
  void letter_lost() noexcept { ++letters_lost_; }
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
  Bowl bowl_;
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
  Step frontier_ = 0;           // in step: the first step that nobody has a lease of
  std::uint64_t expected_ = 0;  // in step: newcomers that wait until everyone has come to the frontier
  bool admitting_ = false;      // the first of them is announced
  std::deque<std::uint64_t> returned_leases_;
  std::map<WorkerId, std::uint64_t> held_leases_;
  std::vector<EventQueue::Action> waiting_for_lease_;
  std::vector<Loss> losses_to_come_;
  std::uint64_t lost_ = 0;
  std::uint64_t letters_ = 0;
  std::uint64_t letters_lost_ = 0;
  std::uint64_t leases_done_ = 0;
  double mail_weight_ = 0;  // on its way
  double lost_weight_ = 0;
};

}  // namespace troupe::explore
