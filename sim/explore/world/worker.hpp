/// A worker in virtual time: all ports of a WorkerHost. Its gradients are those of a QuadraticProblem.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "data/order/lease.hpp"
#include "sim/explore/world/collectives.hpp"
#include "sim/explore/world/memory.hpp"
#include "sim/explore/world/words.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::explore {

class VirtualRun;

/// A rank has one worker at a time. After a loss, a newcomer may take the rank.
struct Identity {
  WorkerId rank = 0;
  std::uint32_t life = 0;     // how often the rank was lost before
  std::uint32_t address = 0;  // in the network; of this worker alone
};

class Worker final : public WorkerPort, public ShardPort, public GroupPort, public PeerPort, public WorkerObserver {
 public:
  Worker(VirtualRun& run, Identity self, const Strategy& strategy, const Membership& membership,
         std::vector<Version> versions = {});

  void start(core::ConstSpan params, Step first = 0);
  void answered(const ShardReply& reply);
  /// A peer's vector. A sender has at most one per peer that is in flight or unread there.
  void receive_peer_message(Worker& sender, double weight, std::shared_ptr<const core::Buffer> vector);
  void credit_returned(const Worker& receiver);
  void membership_changed(const Membership& membership);
  void granted(const data::Lease& lease);
  void dismiss();  ///< no step follows
  /// The machine is lost: it receives and sends nothing. Memory that it lent stays until it has been answered.
  void die();

  [[nodiscard]] const WorkerHost& host() const noexcept { return host_; }
  [[nodiscard]] WorkerHost& host() noexcept { return host_; }
  [[nodiscard]] core::ConstSpan peek(Slot slot) const { return memory_.peek(slot); }
  [[nodiscard]] core::ConstSpan params() const { return peek(kParams); }
  [[nodiscard]] bool alive() const noexcept { return alive_; }
  [[nodiscard]] std::uint32_t life() const noexcept { return identity_.life; }
  [[nodiscard]] std::uint32_t address() const noexcept { return identity_.address; }
  /// Between two steps: it waits for a lease and has no request open.
  [[nodiscard]] bool stands() const noexcept { return stands_ && !granted_ && away_.empty(); }
  /// Its share of the model, with peer messages that have arrived and are not mixed in yet; 0 when it is lost.
  [[nodiscard]] double weight() const noexcept { return alive_ ? host_.weight() + untold_peer_weight_ : 0; }
  /// Stopped, and nothing in flight.
  [[nodiscard]] bool at_rest() const noexcept { return !alive_ || (host_.stopped() && host_.in_flight() == 0); }

  // WorkerPort
  [[nodiscard]] Duration now() const override;
  void compute(Step step) override;
  void run(const KernelCall& call, Shards shards) override;
  void set_deadline(DeadlineId id, Duration after) override;
  // ShardPort
  [[nodiscard]] ShardId shards() const override;
  void send(const ShardRequest& request) override;
  // GroupPort
  void reduce(Step step, const Reduce& reduce) override;
  void broadcast(Step step, const Broadcast& broadcast) override;
  // PeerPort
  [[nodiscard]] bool send(const SendPeer& message) override;
  void release(Slot slot) override;
  // WorkerObserver
  void consumed(const WorkerEvent& event) override;
  void exchanged(const ExchangeRecord& record) override;

 private:
  struct Away {
    std::shared_ptr<Parcel> parcel;
    Slot slot;
    Range range;
  };
  /// Runs `what` after `delay` if the worker still lives, then checks whether it is at rest.
  void later(Duration delay, EventQueue::Action what);
  void heard(const EventQueue::Action& what);
  [[nodiscard]] bool takes_message_of(const Worker& sender) const;
  void ask_for_lease();
  void take_lease();
  void stop();
  void begin(const data::Lease& lease);
  void bucket_final(int bucket);
  void step_final();
  [[nodiscard]] Range bucket_range(int bucket) const;
  [[nodiscard]] Range slices(Shards cut_from) const;
  void collective(Step step, ExchangeId id, Collectives::Task task);

  VirtualRun& run_;
  Identity identity_;
  WorkerId self_;  // its rank
  Memory memory_;
  core::Buffer gradient_;  // computed at the start of the step, final bucket by bucket
  std::map<std::pair<ExchangeId, ShardId>, Away> away_;
  std::map<WorkerId, const Worker*> credit_taken_;  // by receiver
  std::map<WorkerId, Worker*> unread_;              // the sender of each message in an inbox
  std::uint64_t params_checksum_ = 0;               // while computing
  Step first_ = 0;                                  // first step of its host
  Step wants_step_ = 0;                             // to compute; or it computes it
  Step next_step_ = 0;                              // of the next lease that it is granted
  std::optional<data::Lease> granted_;              // and not begun
  std::optional<data::Lease> lease_;                // begun, and not reported as done
  double untold_peer_weight_ = 0;                   // weight of peer messages not yet passed to the rule
  bool stands_ = false;                             // between two steps
  bool asks_ = false;                               // a lease that comes now is taken up by ask_for_lease()
  bool dismissed_ = false;
  core::Random peer_message_loss_;
  bool alive_ = true;
  WorkerHost host_;
};

}  // namespace troupe::explore
