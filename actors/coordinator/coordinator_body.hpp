/// The coordinator's state machine: training → quiet → snapshot → evaluation → checkpoint → training or the end. A checkpoint's contents
/// are taken while training is paused; it is written while training goes on (coordinator_model.cpp). Lives on the actor's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "actors/coordinator/coordinator.hpp"
#include "actors/coordinator/peer_message_ledger.hpp"
#include "actors/protocol/journal_batch.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/requests/asking.hpp"
#include "core/buffer.hpp"
#include "experiment/state/weighted_mean.hpp"
#include "strategies/host/member_steps.hpp"

namespace troupe::actors {

class CoordinatorBody {
 public:
  using Self = CoordinatorActor::stateful_pointer<CoordinatorState>;
  CoordinatorBody(Self self, CoordinatorSetup setup);

  void begin(const ActorDirectory& actors);
  void asked(const LeaseRequest& request);
  void progressed(const WorkerProgress& progress);
  void run_error(const RunError& run_error);
  void site_lost(const SiteLost& news);
  void interrupt();
  void journal_full();
  void arrived(std::uint32_t worker);
  void moved(const TransferNews& news);
  void still_evaluating() { silences_.moved(kEvaluator); }
  void still_writing() { silences_.moved(kDisk); }
  void tick();
  void down(const caf::down_msg& message);
  void await_end();

  /// Whether MemberRules accept the current message. A refusal is counted and sometimes logged; too many end the sender's membership.
  [[nodiscard]] bool hears(const LeaseRequest& request);
  template <class Message>
  [[nodiscard]] bool hears(const Message& message) {
    return heard(rules_.check(speaker_of(self_), message));
  }
  /// Accepts only messages of this process.
  [[nodiscard]] bool hears_from_here();

 private:
  using Next = std::function<void()>;
  using Refused = std::function<void(const caf::error&)>;
  using Source = SilenceDeadlines::Source;
  // Sources besides the sites.
  static constexpr Source kEvaluator = 0xffff'fffe;
  static constexpr Source kDisk = 0xffff'ffff;

  /// See actors/requests/asking.hpp.
  template <class... Answers, class Member, class Answered, class... Messages>
  void ask(Source source, core::Duration silence, const Member& member, Answered answered, const Refused& refused,
           Messages&&... messages) {
    ask_until_silent<Answers...>(self_, silences_, {source}, silence, member, std::move(answered), refused,
                                 std::forward<Messages>(messages)...);
  }
  /// How long a member may be silent during a request.
  [[nodiscard]] core::Duration member_silence() const;
  [[nodiscard]] Source site_of(std::uint32_t worker) const;
  [[nodiscard]] Source site_of_server(std::uint32_t server) const;

  void train();
  void serve(std::uint32_t worker, bool after_pause);
  void check_limits();
  void tell_moves();
  [[nodiscard]] bool keeps_journal() const { return setup_.settings->journal.keep; }
  void flush_journal();
  void when_quiet();
  [[nodiscard]] bool last() const;
  void dismiss(const Next& next);

  // Members that leave (coordinator_members.cpp).
  [[nodiscard]] bool is_member(std::uint32_t worker) const { return alive_[worker]; }
  [[nodiscard]] std::uint32_t members() const;
  /// False if all workers of the site are lost. A site without workers lives as long as the run.
  [[nodiscard]] bool is_alive(std::uint32_t site) const;
  void lose(std::uint32_t worker, const std::string& why);
  void lose_site(std::uint32_t site, const std::string& why);
  void tell_membership();
  [[nodiscard]] std::string name_of(std::uint32_t worker) const;
  [[nodiscard]] std::vector<std::uint32_t> member_list() const;
  // Members that join.
  void miss_absent();
  void seek(std::uint32_t worker);
  [[nodiscard]] bool may_admit() const;
  void admit(const Next& next);
  void prepare_newcomer(std::uint32_t worker, const Next& next);
  void take_in(std::uint32_t worker, strategies::Step first_step, const SiteMembers& members, const SiteActor& site,
               const Next& next);
  // Emergency checkpoint: the remaining members of a strategy that shares every step (coordinator_emergency.cpp).
  void begin_emergency_checkpoint(const std::string& why);
  void look_for_newest();
  void save_newest(std::uint64_t steps);
  [[nodiscard]] bool in_emergency() const { return !emergency_.empty(); }
  /// True: an emergency checkpoint begins, and the calling chain must end: it may hold data of a lost member.
  [[nodiscard]] bool gives_way();
  void end_emergency(const std::string& what);
  /// "go on with `troupe train --resume …`".
  [[nodiscard]] std::string how_to_go_on() const;
  /// A worker did not answer: it is lost. `next` continues without it, if the run goes on.
  void missed(std::uint32_t worker, const caf::error& error, const Next& next);

  // The chain that runs while training is paused: each step calls the next.
  void take_model(const Next& next);
  void take_weighted(std::uint32_t worker, const std::shared_ptr<experiment::WeightedMean>& mean, const Next& next);
  void take_unread(std::uint32_t worker, std::size_t peer_message,
                   const std::shared_ptr<experiment::WeightedMean>& mean, const Next& next);
  void take_statistics(const Next& next);
  void evaluate(bool report, const Next& next);
  void evaluated(const Evaluated& evaluated, bool report);
  /// The worker that is asked for the model, of those whose parameters are the model.
  [[nodiscard]] std::uint32_t model_worker() const { return newest_.value_or(member_list().front()); }
  void save(const Next& next);
  void save_durably(bool needed, const Next& next);
  void take_checkpoint(bool needed, const Next& next);
  void write(const std::shared_ptr<Checkpoint>& checkpoint, bool needed);
  void when_written(const Next& next);
  void rotate();
  void begin_segment(const std::shared_ptr<Checkpoint>& start);
  void collect_records(const Next& next);
  void settle_workers(const Next& next, const Next& absent);
  // Peer messages between workers (coordinator_peer_messages.cpp).
  struct Arrivals {
    std::uint64_t peer_messages = 0;
    core::Duration at{0};
  };
  void await_peer_messages(const Next& next, const Next& absent);
  void ask_peer_messages(const Next& next, const Next& absent, const Arrivals& last);
  void judge_peer_messages(const Next& next, const Next& absent, const Arrivals& last);
  void take_member(std::uint32_t member, const std::shared_ptr<Checkpoint>& into, const Next& next);
  void take_peer_messages(std::uint32_t worker, const MemberState& state,
                          const std::shared_ptr<experiment::WorkerStart>& into, const Next& next);
  void take_slots(std::uint32_t worker, std::vector<strategies::Slot> slots,
                  const std::shared_ptr<experiment::WorkerStart>& into, const Next& next);
  void take_own_statistics(std::uint32_t worker, const std::shared_ptr<experiment::WorkerStart>& into,
                           const Next& next);
  void go_on();

  void snapshot_shards(strategies::Slot slot, const Next& next);
  void snapshot_worker(std::uint32_t worker, strategies::Slot slot, const BorrowedView& space, const Next& next,
                       const Next& absent, bool journalled = true);
  [[nodiscard]] BorrowedView whole_arena() const { return {arena_->view(), arena_}; }
  void take_state(std::vector<std::string> prefixes, const std::shared_ptr<Checkpoint>& into, const Next& next);
  [[nodiscard]] std::vector<std::string> state_prefixes() const;
  [[nodiscard]] std::shared_ptr<Checkpoint> book_keeping() const;
  [[nodiscard]] std::vector<float> canonical() const;
  [[nodiscard]] bool period_over() const;
  [[nodiscard]] bool checkpoint_due() const;
  void saved(const CheckpointWritten& written, bool needed);
  void fail(core::Errc code, const std::string& text);
  void end();

  [[nodiscard]] bool heard(const Refusal& refusal);

  Self self_;
  CoordinatorSetup setup_;
  MemberRules rules_;
  RefusalCount refusals_;
  ActorDirectory actors_;
  std::vector<std::uint32_t> wants_;                      // by worker: leases requested and not granted yet
  std::vector<bool> alive_;                               // by worker: whether it is a member
  std::uint64_t epoch_ = 0;                               // of the membership
  std::vector<std::uint32_t> arrivals_;                   // workers for which a site is open
  std::map<std::uint32_t, WorkerProgress> predecessors_;  // that newcomers replace
  std::string newest_checkpoint_;                         // path of the newest durable checkpoint
  std::vector<SiteLost> early_losses_;                    // received before the ActorDirectory
  PeerMessageLedger peer_messages_;
  ProgressAggregator progress_;
  strategies::MemberSteps steps_;
  JournalBatch journal_;                       // of leases
  std::shared_ptr<core::Buffer> arena_;        // snapshots, in the workers' layout
  std::shared_ptr<std::vector<float>> model_;  // the latest snapshot, canonical
  std::shared_ptr<std::vector<float>> statistics_ = std::make_shared<std::vector<float>>();  // canonical
  core::Duration began_{0};
  core::Duration training_since_{0};
  double train_s_ = 0;     // of this run, earlier sessions included
  double saved_at_s_ = 0;  // of the newest checkpoint, which may not be on disk yet
  std::uint64_t saved_at_step_ = 0;
  std::uint64_t granted_ = 0;  // leases, earlier sessions included: steps done, passed over or under way
  std::uint32_t saved_at_epoch_ = 0;
  strategies::Version center_version_ = 0;           // newest in any snapshot
  std::vector<strategies::Version> shard_versions_;  // in the latest snapshot
  std::uint64_t snapshots_ = 0;
  double weight_ = 1;                         // of the worker of the latest snapshot
  std::uint64_t optimizer_steps_ = 0;         // of that worker
  std::uint64_t updates_ = 0;                 // newest_'s Updates::steps, of its latest snapshot
  std::string emergency_;                     // which member is lost, and why that ends the run; empty: none
  bool writes_emergency_checkpoint_ = false;  // no member is needed any more
  std::optional<std::uint32_t> newest_;       // in an emergency: the worker with the most steps
  std::uint64_t shares_left_ = 0;             // missing answers of the pending snapshot or dismissal
  SilenceDeadlines silences_;                 // of all pending requests
  std::set<std::uint32_t> moved_sites_;       // since the last tick
  core::Duration moved_at_{0};                // when something last moved
  bool training_ = false;
  bool busy_ = false;                   // the chain is running
  bool first_save_ = false;             // the checkpoint at step 0
  bool stop_ = false;                   // target, time or interruption: end at the next pause
  bool dismissed_ = false;              // workers have pushed what they held: no step follows
  bool save_failed_ = false;            // the latest checkpoint could not be written
  bool writing_ = false;                // a checkpoint is being written while training goes on
  std::vector<Next> waiting_for_disk_;  // called when it is written
  bool owed_ = false;                   // another checkpoint became due meanwhile
  bool rotate_ = false;                 // the journal needs a new segment at the next pause
  bool fresh_epoch_ = false;            // no step of the epoch has begun
  Next abandon_;                        // ends the pending admission
  bool ended_ = false;
  RunEnd result_;
  caf::actor listener_;  // receives the RunEnd
};

}  // namespace troupe::actors
