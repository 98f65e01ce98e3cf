/// A phantom worker: the ports of a WorkerHost in virtual time. It takes leases and time like a real worker; steps and kernels cost what
/// the cluster says. A worker that is lost and returns begins a new life with a new host; messages for an earlier life are dropped.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "sim/exchange/peer_mailbox.hpp"
#include "sim/world.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::sim {

/// Totals over all lives of a worker.
struct WorkerAccount {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  ///< exchanged, both directions
  Duration compute{0};
  strategies::WorkerTotals totals;
};

class Worker final : public strategies::WorkerPort,
                     public strategies::ShardPort,
                     public strategies::GroupPort,
                     public strategies::PeerPort {
 public:
  Worker(World& world, strategies::WorkerId self);

  // Events. Those of an earlier life are ignored.
  /// The life of an initial member begins now.
  void begin();
  /// A life as a newcomer: first step `first`, `after` from now, with the centre's parameters.
  void join(strategies::Step first, Duration after);
  /// A new life as the same member, at step `first`. The current lease is computed again unless its step is older. The optimizer's state
  /// that it continues with has `optimizer_steps` steps.
  void begin_anew(strategies::Step first, std::uint64_t optimizer_steps);
  void die();
  void started(std::uint64_t life);
  void granted(const data::Lease& lease);
  void bucket_ready(std::uint64_t life_and_bucket);
  void step_ended(std::uint64_t life);
  void stop(std::uint64_t life);
  void answered(std::uint32_t packet);
  void unheard(std::uint32_t packet);  ///< the server ignored the request
  void reduced(const PendingCollective& collective, Duration waited);
  void peer_message(std::uint32_t packet);
  void credit(std::uint32_t packet);
  void membership_changed();
  void deadline_passed(std::uint32_t deadline);
  /// No more leases: stops now if it waits for one, else at its next request.
  void dismiss();

  [[nodiscard]] const strategies::WorkerHost& host() const { return *host_; }
  [[nodiscard]] bool alive() const noexcept { return host_ != nullptr; }
  /// True if a message of that life comes from a member. Also true for a dead worker's last life: its death is not known yet.
  [[nodiscard]] bool speaks_as(std::uint32_t life) const noexcept { return life + (host_ ? 0 : 1) == life_; }
  [[nodiscard]] strategies::Step completed() const noexcept { return wants_step_; }  ///< steps completed or skipped
  /// Its share of the model, without that of its unread peer messages.
  [[nodiscard]] double weight() const noexcept { return host_->weight(); }
  void add_unread(std::vector<UnreadMessage>& peer_messages) const;
  /// The group of its latest collective, itself included; empty before the first.
  [[nodiscard]] const strategies::Group& group() const noexcept { return group_; }
  [[nodiscard]] bool at_rest() const noexcept { return !host_ || (host_->stopped() && host_->in_flight() == 0); }
  [[nodiscard]] WorkerAccount account() const;

  // strategies::WorkerPort
  [[nodiscard]] Duration now() const override;
  void compute(strategies::Step step) override;
  void run(const strategies::KernelCall& call, strategies::Shards shards) override;
  void set_deadline(strategies::DeadlineId id, Duration after) override;
  // strategies::ShardPort
  [[nodiscard]] strategies::ShardId shards() const override { return world_.run.servers; }
  void send(const strategies::ShardRequest& request) override;
  // strategies::GroupPort
  void reduce(strategies::Step step, const strategies::Reduce& reduce) override;
  void broadcast(strategies::Step step, const strategies::Broadcast& broadcast) override;
  // strategies::PeerPort
  [[nodiscard]] bool send(const strategies::SendPeer& message) override;
  void release(strategies::Slot slot) override;

 private:
  struct Deadline {
    strategies::DeadlineId id = 0;
    std::uint32_t life = 0;
  };
  void begin_at(strategies::Step first, Duration after);
  void make_host(std::uint64_t optimizer_steps);
  void compute_gradients();
  void end_life();
  void take_lease();
  void report_done(const data::Lease& lease);
  void begin_step();
  void ask_for_leases();
  void collective(strategies::Step step, strategies::ExchangeId id, std::span<const strategies::WorkerId> group,
                  const CollectiveTask& task);
  [[nodiscard]] std::uint64_t bytes_of(const CollectiveTask& task, const Vector& vector);
  [[nodiscard]] std::uint32_t packet_to(HostId host, PacketKind kind, std::uint64_t bytes);

  World& world_;
  strategies::WorkerId self_;
  const WorkerPlacement& placement_;
  PerByte memory_;
  std::uint32_t life_ = 0;
  Duration free_{0};  // when its own kernels are done; may be ahead of the world's clock
  std::unique_ptr<strategies::WorkerHost> host_;
  std::deque<data::Lease> hand_;  // leases, in the order of their steps
  data::Lease lease_;             // in computation, or the last one computed
  bool lease_open_ = false;       // computed, update not yet finished
  bool wants_lease_ = false;
  bool dismissed_ = false;
  Duration step_ends_{0};            // end of the current step
  bool computed_ = false;            // the current step's gradients are computed
  bool started_ = false;             // the host has started
  bool early_news_ = false;          // a membership change came before that
  bool joins_ = false;               // not started yet; starts with the centre's parameters
  std::int64_t idle_buffers_ = 0;    // of its loader: leases that it may request
  strategies::Step first_step_ = 0;  // of this life as a member
  strategies::Step wants_step_ = 0;  // requested by Compute
  strategies::Step next_step_ = 0;   // step of the next lease
  Pool<Deadline> deadlines_;
  PeerMailbox mailbox_;
  strategies::Group group_;
  /// Bytes of this worker's part of a collective of `group_`: few kinds repeat, and counting takes as long as the group is large.
  struct KnownBytes {
    std::uint64_t floats = 0;
    bool rounds = false;
    std::optional<strategies::WorkerId> root;
    std::uint64_t bytes = 0;
  };
  std::vector<KnownBytes> known_bytes_;
  WorkerAccount account_;
};

}  // namespace troupe::sim
