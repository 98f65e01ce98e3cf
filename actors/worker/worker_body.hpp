/// What a worker actor knows and does, apart from receiving: the ports of its WorkerHost, its batches and its accounts.
/// Lives on the actor's thread.
#pragma once

#include <deque>
#include <optional>

#include "actors/requests/helping.hpp"
#include "actors/protocol/journal_batch.hpp"
#include "actors/protocol/membership_inbox.hpp"
#include "actors/worker/peer_mail.hpp"
#include "actors/worker/rendezvous.hpp"
#include "actors/requests/silence.hpp"
#include "actors/worker/worker.hpp"
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

  // What the actor is told.
  [[nodiscard]] core::Result<Prepared> prepare();
  [[nodiscard]] const nn::Replica& replica() const { return memory_->replica(); }
  void load(const std::shared_ptr<const StartState>& start);
  void begin(const Company& company);
  void batch_ready(const BatchReady& ready, const LentBatch& batch);
  void compute_now();
  void step_ended();
  void answered(const strategies::ShardReply& reply);
  void offered(const CollectiveOffer& offer, const Lent& slice);
  void share_done(const CollectiveDone& done);
  void collective_ended(const CollectiveEnded& ended);
  void letter(const PeerLetter& letter, const Lent& vector);
  void credit(const PeerCredit& credit);
  [[nodiscard]] caf::result<SnapshotTaken> snapshot(const SnapshotOrder& order, const Lent& space);
  [[nodiscard]] std::uint64_t updates() const { return progress_.steps - (lease_open_ ? 1 : 0); }
  [[nodiscard]] caf::result<Dismissed> dismiss();
  [[nodiscard]] caf::result<Settled> settle_down();
  [[nodiscard]] caf::result<MemberState> tell_state();
  [[nodiscard]] caf::result<Letters> tell_letters(const LettersOrder& order);
  void membership(const MembershipNews& news);
  void deadline_reached(strategies::DeadlineId id);
  void moved(const TransferNews& news);
  void tick();
  void halt();

  // strategies::WorkerPort
  [[nodiscard]] core::Duration now() const override { return setup_.clock->now(); }
  void compute(strategies::Step step) override;
  void run(const strategies::KernelCall& call, strategies::Shards shards) override;
  void set_deadline(strategies::DeadlineId id, core::Duration after) override;
  // strategies::ShardPort
  [[nodiscard]] strategies::ShardId shards() const override {
    return static_cast<strategies::ShardId>(company_.servers.size());
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
  struct Ready {
    BatchReady ready;
    LentBatch batch;
  };
  /// A collective that the exchanger runs.
  struct Elsewhere {
    SilenceDeadlines::Wait wait{};
    strategies::Slot slot;
  };
  struct Asked {
    SilenceDeadlines::Wait wait{};
    strategies::Slot slot;
    strategies::ShardId parts_left = 0;
  };
  void hear(const MembershipNews& news);
  void take_batch();
  void order_step();
  [[nodiscard]] core::Duration pretended(core::Duration computed) const;
  void collective(Rendezvous::Key key, Rendezvous::Task task, int bucket);
  void flush_before_exchange();
  [[nodiscard]] bool over_sites(const strategies::Group& group) const;
  /// A wait for members of these sites: for answers to an exchange with shards, or else for a reduction.
  [[nodiscard]] SilenceDeadlines::Wait await(std::vector<std::uint32_t> sites,
                                             std::optional<strategies::ExchangeId> exchange);
  void advance(Rendezvous::Key key);
  void settle();
  [[nodiscard]] MemberState state() const;
  [[nodiscard]] Letters letters() const;
  void answer_letters(bool now);
  [[nodiscard]] bool report_is_due() const;
  void report();
  [[nodiscard]] bool look_at(const experiment::GuardedStep& step);
  void trouble(core::Errc code, const std::string& text);

  Self self_;
  WorkerSetup setup_;
  std::shared_ptr<const StartState> start_;
  std::optional<WorkerMemory> memory_;
  Company company_;
  std::optional<strategies::WorkerHost> host_;
  MembershipInbox news_;
  HelpingUnit helping_;  // for exchanges with shards that the worker waits for
  Rendezvous rendezvous_;
  std::optional<PeerPostbox> postbox_;  // from begin() on
  JournalBatch journal_;
  std::optional<experiment::WireBytes> wire_bytes_;  // from begin() on
  std::deque<Ready> batches_;
  std::deque<Rendezvous::Finished> finished_;       // collectives to tell the host of, once it is not in a call
  std::map<strategies::ExchangeId, Asked> asked_;   // exchanges with shards
  std::map<Rendezvous::Key, Elsewhere> elsewhere_;  // collectives over several sites
  SilenceDeadlines silences_;                       // of both
  core::Duration moved_at_{0};                      // when something last moved between this site and another
  data::Lease lease_;                               // being computed, or computed last
  bool lease_open_ = false;                         // computed, and its update not yet finished
  bool wants_batch_ = false;
  strategies::Step wants_step_ = 0;  // the step that Compute asked for
  strategies::Step next_step_ = 0;   // the step that the next batch is of
  bool buckets_late_ = false;        // the step under way pretends to take longer: its buckets are ready at its end
  core::Duration wakes_at_{0};       // when that step should end
  core::Duration woke_late_{0};      // how much later the last one did
  core::Duration wants_since_{0};
  core::Duration compute_time_{0};
  core::Duration load_time_{0};
  core::Duration reported_at_{0};
  bool failed_ = false;
  std::optional<caf::typed_response_promise<Dismissed>> dismissal_;      // to keep when nothing is in flight any more
  std::optional<caf::typed_response_promise<Settled>> settling_;         // the same, between two steps
  std::optional<caf::typed_response_promise<MemberState>> asked_state_;  // the same
  std::optional<caf::typed_response_promise<Letters>> asked_letters_;    // to keep when expected_ letters have come
  std::vector<LetterCount> expected_;
  WorkerProgress progress_;              // what report() sends next
  experiment::BadUpdates bad_;           // gradients of its own, in a row
  float usable_ = core::kLargestUsable;  // of a gradient, by the company's wire
  std::uint64_t bad_gradients_ = 0;      // of its own, ever
};

}  // namespace troupe::actors
