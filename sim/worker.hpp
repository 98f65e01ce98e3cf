/// A phantom worker: the ports of a WorkerHost in virtual time. It takes leases and time like a real one; its steps and kernels cost
/// what the cluster says. A worker that is lost and comes back begins a new life with a new host; what was meant for an earlier
/// life is not delivered.
#pragma once

#include <deque>
#include <memory>

#include "sim/mail.hpp"
#include "sim/world.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::sim {

/// What a worker did in all its lives.
struct WorkerAccount {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  ///< exchanged, both ways
  Duration compute{0};
  strategies::WorkerTotals totals;
};

class Worker final : public strategies::WorkerPort,
                     public strategies::ShardPort,
                     public strategies::GroupPort,
                     public strategies::PeerPort {
 public:
  Worker(World& world, strategies::WorkerId self);

  // What happens to it; events of an earlier life are let pass.
  /// The life of a founding member, from now on.
  void begin();
  /// A life as a new member; its first step is `first`, some time `after` now, with the centre's parameters.
  void join(strategies::Step first, Duration after);
  /// A new life in the same company, at step `first`: the lease under way is done again, unless its step is older. `optimizer_steps`
  /// made the optimizer's state that it goes on with.
  void begin_anew(strategies::Step first, std::uint64_t optimizer_steps);
  void die();
  void started(std::uint64_t life);
  void granted(const data::Lease& lease);
  void bucket_ready(std::uint64_t life_and_bucket);
  void step_ended(std::uint64_t life);
  void stop(std::uint64_t life);
  void answered(std::uint32_t packet);
  void unheard(std::uint32_t packet);  ///< the request, by its server
  void reduced(const Meeting& meeting, Duration waited);
  void letter(std::uint32_t packet);
  void credit(std::uint32_t packet);
  void membership_changed();
  void deadline_passed(std::uint32_t deadline);
  /// There will be no leases any more: stops now if it waits for one, else when it asks.
  void dismiss();

  [[nodiscard]] const strategies::WorkerHost& host() const { return *host_; }
  [[nodiscard]] bool alive() const noexcept { return host_ != nullptr; }
  /// Is what it said in that life said by a member, as long as it is one? Of its last life yes: nobody knows yet that it is over.
  [[nodiscard]] bool speaks_as(std::uint32_t life) const noexcept { return life + (host_ ? 0 : 1) == life_; }
  [[nodiscard]] strategies::Step completed() const noexcept { return wants_step_; }  ///< or passed over
  /// Its share of the model; that of letters that it has not read is theirs.
  [[nodiscard]] double weight() const noexcept { return host_->weight(); }
  void add_unread(std::vector<UnreadLetter>& letters) const;
  /// Whom it met in its latest collective, itself included; nobody yet: empty.
  [[nodiscard]] const strategies::Group& group() const noexcept { return group_; }
  [[nodiscard]] bool at_rest() const noexcept { return !host_ || (host_->stopped() && host_->in_flight() == 0); }
  [[nodiscard]] WorkerAccount account() const;

  // strategies::WorkerPort
  [[nodiscard]] Duration now() const override;
  void compute(strategies::Step step) override;
  void run(const strategies::KernelCall& call, strategies::Shards shards) override;
  void set_deadline(strategies::DeadlineId id, Duration after) override;
  // strategies::ShardPort
  [[nodiscard]] strategies::ShardId shards() const override { return world_.plan.servers; }
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
  void begin_step();
  void ask_for_leases();
  void collective(strategies::Step step, strategies::ExchangeId id, std::span<const strategies::WorkerId> group,
                  const CollectiveTask& task);
  [[nodiscard]] std::uint32_t packet_to(HostId host, PacketKind kind, std::uint64_t bytes);

  World& world_;
  strategies::WorkerId self_;
  const Place& place_;
  PerByte memory_;
  std::uint32_t life_ = 0;
  Duration free_{0};  // when its own kernels are done: it may be ahead of the world's clock
  std::unique_ptr<strategies::WorkerHost> host_;
  std::deque<data::Lease> hand_;  // leases, in the order of their steps
  data::Lease lease_;             // being computed, or computed last
  bool lease_open_ = false;       // computed, and its update not yet finished
  bool wants_lease_ = false;
  bool dismissed_ = false;
  Duration step_ends_{0};            // of the step under way
  bool computed_ = false;            // its gradients are
  bool started_ = false;             // its host has been
  bool early_news_ = false;          // of the members came before that
  bool joins_ = false;               // its life has not started, and will with the centre's parameters
  std::int64_t idle_buffers_ = 0;    // of its loader: what it may ask leases for
  strategies::Step wants_step_ = 0;  // that Compute asked for
  strategies::Step next_step_ = 0;   // that the next lease is of
  Pool<Deadline> deadlines_;
  Postbox postbox_;
  strategies::Group group_;
  WorkerAccount account_;
};

}  // namespace troupe::sim
