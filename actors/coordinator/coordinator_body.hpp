/// The coordinator's port among actors: passes messages to the coordinator's state machine (strategies/coordination/coordinator.hpp) as
/// events, and carries out its requests by messages to the members, the recorder, the evaluator and the rejoin manager. Lives on the
/// actor's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/coordinator/coordinator.hpp"
#include "actors/coordinator/peer_message_ledger.hpp"
#include "actors/protocol/journal_batch.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/timer.hpp"
#include "core/buffer.hpp"
#include "experiment/accounts/silence_watch.hpp"
#include "experiment/ledger/ledger.hpp"
#include "experiment/state/weighted_mean.hpp"
#include "strategies/coordination/coordinator.hpp"

namespace troupe::actors {

/// What the coordinator of this run decides by.
[[nodiscard]] coordination::CoordinatorOptions options_of(const CoordinatorSetup& setup);

class CoordinatorBody final : public coordination::CoordinatorPort {
 public:
  using Self = CoordinatorActor::stateful_pointer<CoordinatorState>;
  CoordinatorBody(Self self, CoordinatorSetup setup);
  ~CoordinatorBody() override;
  CoordinatorBody(const CoordinatorBody&) = delete;
  CoordinatorBody& operator=(const CoordinatorBody&) = delete;

  void begin(const ActorDirectory& actors);
  void asked(const LeaseRequest& request) { machine_.requested(request.worker, request.count); }
  void progressed(const WorkerProgress& progress);
  void run_error(const RunError& run_error) {
    machine_.member_failed(run_error.site, {run_error.code, run_error.text});
  }
  void site_lost(const SiteLost& news);
  void interrupt() { machine_.interrupted(); }
  void save();
  void journal_full() { machine_.journal_full(); }
  void arrived(std::uint32_t worker) { machine_.arrived(worker); }
  void transfer_seen(const TransferNews& news);
  void still_evaluating() { silences_.moved(kEvaluator); }
  void still_writing() { silences_.moved(kDisk); }
  void tick();
  void down(const caf::down_msg& message);
  void await_end();

  /// Whether the current message passes MemberMessageChecks. A refusal is counted and sometimes logged; too many end the sender's
  /// membership.
  [[nodiscard]] bool accepts(const LeaseRequest& request);
  [[nodiscard]] bool accepts(const WorkerProgress& progress);
  template <class Message>
  [[nodiscard]] bool accepts(const Message& message) {
    return accepted(checks_.check(sender_of(self_), message));
  }
  /// Accepts only messages of this process.
  [[nodiscard]] bool accepts_from_here();

  // CoordinatorPort.
  [[nodiscard]] core::Duration now() const override { return setup_.clock->now(); }
  void grant(strategies::WorkerId worker, std::span<const data::Lease> leases, bool after_pause) override;
  void perform(const coordination::Order& order) override;
  void write_checkpoint() override;
  void rewound(strategies::Step steps) override;
  void membership_changed(const strategies::Membership& membership) override;
  void removed(strategies::WorkerId worker) override;
  void lost(const coordination::Loss& loss) override;
  void absent(strategies::WorkerId worker) override;
  void disconnected(strategies::WorkerId one, strategies::WorkerId other) override {
    peer_messages_.disconnected(one, other);
  }
  void find_replacement(strategies::WorkerId worker) override;
  void warn(const std::string& text) override;
  void evaluate_beside() override;
  void judged(const coordination::EvaluationWatch::Verdict& verdict) override;
  void stops_early(coordination::EarlyStop why) override;
  void ended(const std::optional<core::Error>& error) override;

 private:
  using Next = std::function<void()>;
  using Refused = std::function<void(const caf::error&)>;
  using Source = SilenceDeadlines::Source;
  // Sources besides the sites.
  static constexpr Source kEvaluator = 0xffff'fffe;
  static constexpr Source kDisk = 0xffff'ffff;
  /// What continues a task: `done`, or `interrupted` when what a lost member had is missing. Both answer the order that they were made for.
  struct Continuations {
    Next done;
    Next interrupted;
  };

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
  [[nodiscard]] bool is_member(std::uint32_t worker) const { return machine_.members().has(worker); }
  [[nodiscard]] std::vector<std::uint32_t> member_list() const { return machine_.members().list(); }
  [[nodiscard]] bool keeps_journal() const { return setup_.settings->journal.keep; }
  [[nodiscard]] bool accepted(const Refusal& refusal);
  void fail(core::Errc code, const std::string& text) { machine_.fail({code, text}); }
  void note(Note::Level level, std::string text);
  // What the recorder is told of members and samples (coordinator_membership.cpp).
  [[nodiscard]] double session_s() const;
  void tell_member(std::uint32_t worker, MemberReport::Event event, const std::string& reason);
  void tell_beginning();
  void tell_fatal_losses(const std::optional<core::Error>& error);
  void hear(const WorkerProgress& progress);
  void look_for_silence();
  [[nodiscard]] LedgerReport ledger() const;
  void tell_ledger();
  void tell_moves();
  void give_up_waiting_for_reasons();
  void flush_journal();
  void enter_epoch(std::uint32_t epoch);
  /// A worker did not answer: it is lost. `next` continues without it, if the run goes on.
  void missed(std::uint32_t worker, const caf::error& error, const Next& next);
  /// Sends `order` to every member. `absent` if one is lost before it answers.
  template <class Answered, class WorkerOrder>
  void ask_members(const WorkerOrder& order, const Next& next, const Next& absent);
  void dismiss_workers(const Next& next);
  void collect_records(const Next& next);

  // The model (coordinator_model.cpp).
  void take_model(const Continuations& next);
  void take_vector(strategies::Slot slot, const Continuations& next);
  void take_weighted(std::uint32_t worker, strategies::Slot slot, const std::shared_ptr<experiment::WeightedMean>& mean,
                     const Next& next);
  void take_unread(std::uint32_t worker, std::size_t peer_message,
                   const std::shared_ptr<experiment::WeightedMean>& mean, const Next& next);
  void take_statistics(const Next& next);
  /// The model that is being evaluated, and what there is to say of it.
  struct Evaluation {
    std::shared_ptr<std::vector<float>> model;
    EvaluationReport report;
    bool reported = false;             // by this session or the one before
    std::optional<EpochReport> epoch;  // at the end of one that was not reported
    experiment::EpochTotals open;      // the epoch before it was closed
    bool last = false;                 // of a run that ends within an epoch
    std::shared_ptr<Checkpoint> best;  // how far the run is, should it be the best model
  };
  void evaluate(std::uint64_t number);
  void await_evaluation(const Next& next);
  [[nodiscard]] Evaluation begin_evaluation();
  void evaluator_failed(const Evaluated& evaluated);
  void ask_evaluator(const std::function<void(const coordination::Score&)>& next);
  void report(const Evaluation& evaluation, const Evaluated& evaluated);
  void warn_of_replaced(const Evaluated& evaluated);
  void send_report();
  void keep_best();
  [[nodiscard]] double learning_rate(double factor) const;
  [[nodiscard]] bool has_validation() const { return setup_.settings->data.validation != "none"; }
  void snapshot_shards(strategies::Slot slot, const Next& next);
  void snapshot_worker(std::uint32_t worker, strategies::Slot slot, const BorrowedView& space, const Next& next,
                       const Next& absent, bool journalled = true);
  [[nodiscard]] BorrowedView whole_arena() const { return {arena_->view(), arena_}; }
  [[nodiscard]] std::shared_ptr<std::vector<float>> canonical() const;

  // Checkpoints (coordinator_checkpoint.cpp).
  void take_states(std::uint32_t worker, const Next& next);
  void take_state(std::vector<std::string> prefixes, const std::shared_ptr<Checkpoint>& into, const Next& next);
  void take_own_states(std::uint32_t worker, const std::shared_ptr<Checkpoint>& into, const Next& next);
  void take_own_state(std::uint32_t worker, const std::shared_ptr<std::vector<std::byte>>& into, const Next& next,
                      const Next& absent);
  [[nodiscard]] bool checkpoint_has_own_states() const;
  [[nodiscard]] std::vector<std::string> state_prefixes() const;
  [[nodiscard]] std::shared_ptr<Checkpoint> begin_checkpoint() const;
  void complete(Checkpoint& checkpoint) const;

  // Journal segments (coordinator_segment.cpp).
  void take_member(std::uint32_t member, const Continuations& next);
  void take_servers(const Next& next);
  void take_peer_messages(std::uint32_t worker, const MemberState& state,
                          const std::shared_ptr<experiment::WorkerStart>& into, const Continuations& next);
  void take_slots(std::uint32_t worker, std::vector<strategies::Slot> slots,
                  const std::shared_ptr<experiment::WorkerStart>& into, const Continuations& next);
  void take_own_statistics(std::uint32_t worker, const std::shared_ptr<experiment::WorkerStart>& into,
                           const Continuations& next);
  void begin_segment(const Next& next);

  // Peer messages between workers (coordinator_peer_messages.cpp).
  struct Arrivals {
    std::uint64_t peer_messages = 0;
    core::Duration at{0};
  };
  void await_peer_messages(const Continuations& next);
  void ask_peer_messages(const Continuations& next, const Arrivals& last);
  void judge_peer_messages(const Continuations& next, const Arrivals& last);

  // Newcomers (coordinator_newcomer.cpp).
  void prepare_newcomer(const coordination::Order& order);
  void take_in(std::uint32_t worker, const SiteMembers& members, const SiteActor& site);
  void begin_newcomer(std::uint32_t worker, const Continuations& next);

  // Emergency.
  void find_newest(std::uint64_t number);

  Self self_;
  Timer timer_{self_};
  CoordinatorSetup setup_;
  coordination::Coordinator machine_;
  MemberMessageChecks checks_;
  RefusalCount refusals_;
  ActorDirectory actors_;
  std::map<std::uint32_t, WorkerProgress> predecessors_;      // that newcomers replace
  std::map<std::uint32_t, SiteActor> newcomers_;              // sites that have not begun
  std::vector<WorkerActor> proxies_;                          // of newcomers, also of those that are lost again
  std::map<std::uint32_t, experiment::OwnState> own_states_;  // of programs, taken in this pause
  /// Workers whose programs a replay of all segments has running where the next segment begins.
  std::set<std::uint32_t> running_programs_;
  std::string newest_checkpoint_;  // path of the newest durable checkpoint
  bool save_requested_ = false;    // by the user, who is told about it
  PeerMessageLedger peer_messages_;
  ProgressAggregator progress_;
  experiment::LedgerKeeper ledger_;
  LedgerReport told_ledger_;
  experiment::SilenceWatch silence_;
  std::set<std::uint32_t> gone_;               // no members any more, and the recorder does not know why
  JournalBatch journal_;                       // of leases
  std::shared_ptr<core::Buffer> arena_;        // snapshots, in the workers' layout
  std::shared_ptr<std::vector<float>> model_;  // the latest snapshot, canonical
  std::shared_ptr<std::vector<float>> statistics_ = std::make_shared<std::vector<float>>();  // canonical
  std::shared_ptr<Checkpoint> checkpoint_;  // what take_state has copied
  std::shared_ptr<Checkpoint> segment_;     // what take_members has copied
  core::Duration began_{0};
  strategies::Version center_version_ = 0;           // newest in any snapshot
  std::vector<strategies::Version> shard_versions_;  // in the latest snapshot
  std::uint64_t snapshots_ = 0;
  std::uint32_t epoch_ = 0;                 // of the latest lease
  std::optional<Evaluation> evaluation_;    // the latest that has begun
  bool evaluates_ = false;                  // it has not ended
  std::optional<EvaluationReport> report_;  // waits for what follows from its score
  bool warned_of_validation_ = false;       // that samples of this split cannot be read
  bool warned_of_test_ = false;
  Next after_evaluation_;                  // continues await_evaluation
  double weight_ = 1;                      // of the worker of the latest snapshot
  std::uint64_t optimizer_steps_ = 0;      // of that worker
  strategies::WorkerId model_worker_ = 0;  // the worker that is asked for what is the same on all of them
  std::uint64_t updates_ = 0;              // its Updates::steps, of its latest snapshot
  SilenceDeadlines silences_;              // of all pending requests
  /// Sites whose endpoint was closed in order, or whose loader has ended; the reason comes over another connection, perhaps later.
  struct ClosedEndpoint {
    SiteLost news;
    core::Duration at{0};
  };
  std::vector<ClosedEndpoint> closed_endpoints_;
  std::set<std::uint32_t> moved_sites_;  // since the last tick
  core::Duration moved_at_{0};           // when something last moved
  RunEnd result_;
  caf::actor listener_;  // receives the RunEnd
};

}  // namespace troupe::actors
