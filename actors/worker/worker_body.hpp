/// State and work of a worker actor, except the dispatch of its messages (worker.cpp): the ports of its WorkerHost, its batches and its
/// progress counts. Lives on the actor's thread.
#pragma once

#include <deque>
#include <optional>

#include "actors/protocol/journal_batch.hpp"
#include "actors/protocol/membership_inbox.hpp"
#include "actors/requests/helping.hpp"
#include "actors/requests/silence.hpp"
#include "actors/requests/timer.hpp"
#include "actors/worker/peer_mailbox.hpp"
#include "actors/worker/program_output.hpp"
#include "actors/worker/rendezvous.hpp"
#include "actors/worker/worker.hpp"
#include "core/affinity/binding.hpp"
#include "experiment/accounts/distance.hpp"
#include "experiment/bad_updates.hpp"
#include "experiment/state/wire_bytes.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::actors {

class WorkerBody final : public strategies::WorkerPort,
                         public strategies::ShardPort,
                         public strategies::GroupPort,
                         public strategies::PeerPort,
                         public strategies::WorkerObserver {
 public:
  using Self = WorkerActor::stateful_pointer<WorkerState>;
  WorkerBody(Self self, WorkerSetup setup);
  ~WorkerBody() override;

  // The actor's messages.
  [[nodiscard]] core::Result<Prepared> prepare();
  [[nodiscard]] const nn::Replica& replica() const { return memory_->replica(); }
  [[nodiscard]] core::Result<void> load(const StartState& start);
  void begin(const ActorDirectory& actors);
  void batch_ready(const BatchReady& ready, const BorrowedBatch& batch);
  void compute_now();
  void step_ended();
  /// Of a run that ends with a worker's error. A program that is silent or was killed may be a victim of the machine, as a lost host is.
  [[nodiscard]] core::Errc code_of_end(core::Errc code) const;
  void tell_failure(const std::string& why);  // of a program of the user's
  void answered(const ShardAnswer& answer);
  void offered(const CollectiveOffer& offer, const BorrowedView& slice);
  void share_done(const CollectiveDone& done);
  void collective_ended(const CollectiveEnded& ended);
  void peer_message(const PeerMessage& peer_message, const BorrowedView& vector);
  void credit(const PeerCredit& credit);
  [[nodiscard]] caf::result<SnapshotTaken> snapshot(const SnapshotOrder& order, const BorrowedView& space);
  [[nodiscard]] caf::result<SnapshotTaken> own_state(const SnapshotOrder& order, const BorrowedView& space);
  [[nodiscard]] std::uint64_t updates() const { return progress_.steps - (lease_open_ ? 1 : 0); }
  [[nodiscard]] caf::result<Dismissed> dismiss();
  [[nodiscard]] caf::result<Settled> settle_down();
  [[nodiscard]] caf::result<MemberState> tell_state();
  [[nodiscard]] caf::result<PeerMessageCounts> tell_peer_messages(const PeerMessageCountsOrder& order);
  void membership(const MembershipNews& news);
  void deadline_reached(strategies::DeadlineId id);
  void transfer_seen(const TransferNews& news);
  void tick();
  /// Errc::program: the replica's program failed after its last batch.
  [[nodiscard]] core::Result<void> halt(bool in_order);

  // strategies::WorkerPort
  [[nodiscard]] core::Duration now() const override { return setup_.clock->now(); }
  void compute(strategies::Step step) override;
  void run(const strategies::KernelCall& call, strategies::Shards shards) override;
  void set_deadline(strategies::DeadlineId id, core::Duration after) override;
  // strategies::ShardPort
  [[nodiscard]] strategies::ShardId shards() const override {
    return static_cast<strategies::ShardId>(actors_.servers.size());
  }
  void send(const strategies::ShardRequest& request) override;
  // strategies::GroupPort
  void reduce(strategies::Step step, const strategies::Reduce& reduce) override;
  void broadcast(strategies::Step step, const strategies::Broadcast& broadcast) override;
  // strategies::PeerPort
  [[nodiscard]] bool send(const strategies::SendPeer& message) override;
  void release(strategies::Slot slot) override;
  // strategies::WorkerObserver
  void consumed(const strategies::WorkerEvent& event) override;
  void exchanged(const strategies::ExchangeRecord& record) override;

 private:
  [[nodiscard]] bool has_program() const;
  [[nodiscard]] std::string against_divergence() const;
  struct Ready {
    BatchReady ready;
    BorrowedBatch batch;
    [[nodiscard]] nn::Batch view() const noexcept;
  };
  /// A collective over several sites, run by the exchanger.
  struct Elsewhere {
    SilenceDeadlines::Wait wait{};
    strategies::Slot slot;
  };
  enum class MeasuredBy : std::uint8_t { nobody, servers, worker };
  struct Asked {
    SilenceDeadlines::Wait wait{};
    strategies::Slot slot;
    strategies::Transfer kind{};
    MeasuredBy measured_by{};  // how far the slot is from the centre
    strategies::ShardId parts_left = 0;
  };
  void hear(const MembershipNews& news);
  void take_batch();
  void discard_batches() noexcept;
  void order_step();
  void hash_parameters();
  [[nodiscard]] core::OptimizerStep optimizer_step() const;
  [[nodiscard]] core::Duration pretended(core::Duration computed) const;
  void collective(Rendezvous::Key key, Rendezvous::Task task, int bucket);
  void flush_before_exchange();
  [[nodiscard]] bool over_sites(const strategies::Group& group) const;
  /// Begins a wait for members of these sites: for the answers to `exchange` with shards, or, if none, for a reduction.
  [[nodiscard]] SilenceDeadlines::Wait await(std::vector<std::uint32_t> sites,
                                             std::optional<strategies::ExchangeId> exchange);
  void advance(Rendezvous::Key key);
  /// Call it after each call of the host.
  void after_event();
  void report_finished_collectives();
  void help_or_leave();
  void answer_settle_orders();
  void answer_dismissal();
  [[nodiscard]] MemberState state() const;
  [[nodiscard]] PeerMessageCounts peer_messages() const;
  void answer_peer_messages(bool now);
  void count_bytes(experiment::Purpose purpose, std::uint32_t member, std::uint64_t bytes);
  [[nodiscard]] MeasuredBy measured_by(const strategies::ShardRequest& request) const;
  [[nodiscard]] MeasuredBy begin_measurement(const strategies::ShardRequest& request);
  [[nodiscard]] bool measurement_begins(double length);
  void measured(std::size_t offset, std::size_t count, std::optional<double> squared);
  [[nodiscard]] bool report_is_due() const;
  void report();
  [[nodiscard]] bool look_at(const experiment::GuardedStep& step);
  void leave_crowded_cpus();
  void run_error(core::Errc code, const std::string& text);
  void step_failed(const core::Error& error);

  Self self_;
  Timer timer_{self_};
  WorkerSetup setup_;
  std::vector<strategies::Version> first_versions_;  // by shard, of its start state; none: first_version_
  strategies::Version first_version_ = 0;
  std::uint64_t optimizer_steps_ = 0;  // that made the optimizer state it began with
  std::optional<WorkerMemory> memory_;
  ActorDirectory actors_;
  std::optional<strategies::WorkerHost> host_;
  std::shared_ptr<ProgramOutput> output_;  // of the replica's program
  MembershipInbox news_;
  HelpingUnit helping_;  // for exchanges with shards that the worker waits for
  Rendezvous rendezvous_;
  std::optional<PeerMailbox> mailbox_;  // from begin() on
  JournalBatch journal_;
  std::optional<experiment::WireBytes> wire_bytes_;  // from begin() on
  std::deque<Ready> batches_;
  std::deque<Rendezvous::Finished> finished_;       // collectives to report to the host outside its calls
  std::map<strategies::ExchangeId, Asked> asked_;   // exchanges with shards
  std::map<Rendezvous::Key, Elsewhere> elsewhere_;  // collectives over several sites
  std::map<strategies::ExchangeId, core::Slice> collective_parts_;  // of open collectives: what is lent
  SilenceDeadlines silences_;                                       // of asked_ and elsewhere_
  core::Duration moved_at_{0};                                      // last transfer between this site and another
  data::Lease lease_;                                               // of the current step, or of the last one
  bool hash_due_ = false;                                           // of the parameters that the next step begins with
  bool hash_owed_ = false;                                          // it was due while an exchange was in flight
  bool lease_open_ = false;                                         // computed, its update not yet finished
  bool wants_batch_ = false;
  strategies::Step wants_step_ = 0;  // the step that the host asked for
  strategies::Step next_step_ = 0;   // the step of the next batch
  bool buckets_late_ = false;        // the current step is slowed down: its buckets are reported at its end
  core::Duration wakes_at_{0};       // planned end of that step
  core::Duration woke_late_{0};      // how much later the last step ended
  core::Duration wants_since_{0};
  core::Duration compute_time_{0};
  core::Duration load_time_{0};
  core::Duration reported_at_{0};
  bool failed_ = false;
  std::optional<caf::typed_response_promise<Dismissed>> dismissal_;      // delivered when nothing is in flight
  std::optional<caf::typed_response_promise<Settled>> settling_;         // delivered when the host has settled
  std::optional<caf::typed_response_promise<MemberState>> asked_state_;  // the same
  std::optional<caf::typed_response_promise<PeerMessageCounts>>
      asked_peer_messages_;  // delivered when the messages in expected_ are here
  std::vector<PeerMessageCount> expected_;
  std::vector<std::byte> own_state_;  // of the replica, while the coordinator copies it in pieces
  WorkerProgress progress_;           // sent by the next report()
  experiment::DistanceGauge gauge_;
  experiment::BadUpdates bad_;  // consecutive unusable gradients of this worker
  experiment::LossWatch losses_;
  std::optional<core::ThreadBinding> binding_;  // of this thread and the replica's, from prepare() on
  float usable_ = core::kLargestUsable;         // largest magnitude in a gradient that the run's wire format carries
  std::uint64_t bad_gradients_ = 0;             // unusable gradients of this worker so far
};

}  // namespace troupe::actors
