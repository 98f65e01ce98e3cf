/// The coordinator's state machine: training → quiet → snapshot → evaluation → checkpoint → training or the end. A checkpoint's
/// contents are taken while training stands still; it is written while training goes on (coordinator_model.cpp).
/// Lives on the actor's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "actors/requests/asking.hpp"
#include "actors/coordinator/coordinator.hpp"
#include "actors/protocol/journal_batch.hpp"
#include "actors/coordinator/letter_ledger.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/buffer.hpp"
#include "experiment/state/weighted_mean.hpp"
#include "strategies/host/member_steps.hpp"

namespace troupe::actors {

class CoordinatorBody {
 public:
  using Self = CoordinatorActor::stateful_pointer<CoordinatorState>;
  CoordinatorBody(Self self, CoordinatorSetup setup);

  void begin(const Company& company);
  void asked(const LeaseRequest& request);
  void progressed(const WorkerProgress& progress);
  void trouble(const Trouble& trouble);
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

  /// Whether what has just come may be heard, by what MemberRules say; else it is counted, and now and then said.
  [[nodiscard]] bool hears(const LeaseRequest& request);
  template <class Message>
  [[nodiscard]] bool hears(const Message& message) {
    return heard(rules_.check(speaker_of(self_), message));
  }
  /// Nobody in another process may say it.
  [[nodiscard]] bool hears_from_here();

 private:
  using Next = std::function<void()>;
  using Refused = std::function<void(const caf::error&)>;
  using Source = SilenceDeadlines::Source;
  // Beside the sites.
  static constexpr Source kEvaluator = 0xffff'fffe;
  static constexpr Source kDisk = 0xffff'ffff;

  /// See actors/requests/asking.hpp.
  template <class... Answers, class Member, class Answered, class... Messages>
  void ask(Source source, core::Duration silence, const Member& member, Answered answered, const Refused& refused,
           Messages&&... messages) {
    ask_until_silent<Answers...>(self_, silences_, {source}, silence, member, std::move(answered), refused,
                                 std::forward<Messages>(messages)...);
  }
  /// How long a member that is asked for something may be silent.
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

  // Members that go (coordinator_members.cpp).
  [[nodiscard]] bool is_member(std::uint32_t worker) const { return alive_[worker]; }
  [[nodiscard]] std::uint32_t members() const;
  /// A site whose worker has not been lost; every other kind of site lives as long as the run.
  [[nodiscard]] bool is_alive(std::uint32_t site) const;
  void lose(std::uint32_t worker, const std::string& why);
  void lose_site(std::uint32_t site, const std::string& why);
  void tell_membership();
  [[nodiscard]] std::string name_of(std::uint32_t worker) const;
  [[nodiscard]] std::vector<std::uint32_t> member_list() const;
  // Members that come.
  void miss_absent();
  void seek(std::uint32_t worker);
  [[nodiscard]] bool may_admit() const;
  void admit(const Next& next);
  void prepare_newcomer(std::uint32_t worker, const Next& next);
  void take_in(std::uint32_t worker, strategies::Step first_step, const SiteMembers& members, const SiteActor& site,
               const Next& next);
  // Who is left of a company that shares every step, and what they still hold (coordinator_rescue.cpp).
  void rescue(const std::string& why);
  void look_for_newest();
  void save_newest(std::uint64_t steps);
  [[nodiscard]] bool rescues() const { return !rescue_.empty(); }
  /// For the links of every other chain: it ends here where a rescue is to begin, as what it has seen may be of somebody who is gone.
  [[nodiscard]] bool gives_way();
  void end_rescue(const std::string& what);
  /// "go on with `troupe train --resume …`".
  [[nodiscard]] std::string how_to_go_on() const;
  /// A worker did not answer: it is lost; the chain that asked it goes on without, if the run does.
  void missed(std::uint32_t worker, const caf::error& error, const Next& next);

  // The chain that runs while training stands still; each link calls the next.
  void take_model(const Next& next);
  void take_weighted(std::uint32_t worker, const std::shared_ptr<experiment::WeightedMean>& mean, const Next& next);
  void take_unread(std::uint32_t worker, std::size_t letter, const std::shared_ptr<experiment::WeightedMean>& mean,
                   const Next& next);
  void take_statistics(const Next& next);
  void evaluate(bool report, const Next& next);
  void evaluated(const Evaluated& evaluated, bool report);
  /// Of the workers whose parameters are the model, the one that is asked for them.
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
  // What workers have written to each other (coordinator_letters.cpp).
  struct Arrivals {
    std::uint64_t letters = 0;
    core::Duration at{0};
  };
  void await_letters(const Next& next, const Next& absent);
  void ask_letters(const Next& next, const Next& absent, const Arrivals& last);
  void judge_letters(const Next& next, const Next& absent, const Arrivals& last);
  void take_member(std::uint32_t member, const std::shared_ptr<Checkpoint>& into, const Next& next);
  void take_letters(std::uint32_t worker, const MemberState& state,
                    const std::shared_ptr<experiment::WorkerStart>& into, const Next& next);
  void take_slots(std::uint32_t worker, std::vector<strategies::Slot> slots,
                  const std::shared_ptr<experiment::WorkerStart>& into, const Next& next);
  void take_own_statistics(std::uint32_t worker, const std::shared_ptr<experiment::WorkerStart>& into,
                           const Next& next);
  void go_on();

  void snapshot_shards(strategies::Slot slot, const Next& next);
  void snapshot_worker(std::uint32_t worker, strategies::Slot slot, const Lent& space, const Next& next,
                       const Next& absent, bool journalled = true);
  [[nodiscard]] Lent whole_arena() const { return {arena_->view(), arena_}; }
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
  Company company_;
  std::vector<std::uint32_t> wants_;                      // by worker: leases asked for and not granted yet
  std::vector<bool> alive_;                               // by worker: members
  std::uint64_t epoch_ = 0;                               // of the membership
  std::vector<std::uint32_t> arrivals_;                   // workers for whom a site is open
  std::map<std::uint32_t, WorkerProgress> predecessors_;  // of newcomers
  std::string newest_checkpoint_;                         // path of the newest that is durable
  std::vector<SiteLost> early_losses_;                    // that came before the company
  LetterLedger letters_;
  ProgressBook progress_;
  strategies::MemberSteps steps_;
  JournalBatch journal_;                       // of leases
  std::shared_ptr<core::Buffer> arena_;        // snapshots, in the workers' layout
  std::shared_ptr<std::vector<float>> model_;  // the latest snapshot, canonical
  std::shared_ptr<std::vector<float>> statistics_ = std::make_shared<std::vector<float>>();  // canonical
  core::Duration began_{0};
  core::Duration training_since_{0};
  double train_s_ = 0;     // of this run, earlier sessions included
  double saved_at_s_ = 0;  // what the newest checkpoint holds, which may not be written yet
  std::uint64_t saved_at_step_ = 0;
  std::uint64_t granted_ = 0;  // leases, earlier sessions included: steps done, passed over or under way
  std::uint32_t saved_at_epoch_ = 0;
  strategies::Version center_version_ = 0;           // newest that a snapshot has seen
  std::vector<strategies::Version> shard_versions_;  // that the latest snapshot has seen
  std::uint64_t snapshots_ = 0;
  double weight_ = 1;                    // of the worker whose snapshot was taken last
  std::uint64_t optimizer_steps_ = 0;    // of that worker
  std::uint64_t updates_ = 0;            // newest_'s Updates::steps, of its latest snapshot
  std::string rescue_;                   // who is lost, and why that ends the run; empty: nobody
  bool writes_rescue_ = false;           // nobody is needed any more
  std::optional<std::uint32_t> newest_;  // then: the worker that came farthest
  std::uint64_t shares_left_ = 0;        // of the snapshot under way
  SilenceDeadlines silences_;            // of everybody who is asked for something
  std::set<std::uint32_t> moved_sites_;  // since the last tick
  core::Duration moved_at_{0};           // when something last moved
  bool training_ = false;
  bool busy_ = false;                   // the chain is running
  bool first_save_ = false;             // the checkpoint at step 0
  bool stop_ = false;                   // target, time or interruption: end at the next quiet moment
  bool dismissed_ = false;              // workers have handed in what they held: no step will follow
  bool save_failed_ = false;            // the newest that was written or was not
  bool writing_ = false;                // a checkpoint, which training does not wait for
  std::vector<Next> waiting_for_disk_;  // what goes on when it is written
  bool owed_ = false;                   // one fell due meanwhile
  bool rotate_ = false;                 // the journal wants a new segment at the next quiet moment
  bool fresh_epoch_ = false;            // no step of it has begun
  Next abandon_;                        // the admission under way
  bool ended_ = false;
  RunEnd result_;
  caf::actor listener_;  // to the end
};

}  // namespace troupe::actors
