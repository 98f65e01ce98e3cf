/// The coordinator's rules, as a pure state machine: membership, leases, admission of newcomers, evaluation, checkpoints, journal segments,
/// emergency checkpoints and the end of a run. Events in (its methods), actions out (CoordinatorPort): no clock, no thread, no actor. Real
/// runs, forecasts and the schedule search execute this same machine.
///
/// Training pauses at a lease boundary for every operation on the whole model: no leases are granted, the granted ones end, then the port
/// performs one task after the other, and training resumes. A checkpoint's contents are copied during a pause; it is written while
/// training goes on, except the first and the last of a run.
///
/// When members share every step (Needs::whole_steps) and one is lost, nobody can take another step: the last step that all others have
/// ended is saved, and the run ends. This is the emergency.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/coordination/checkpoint_schedule.hpp"
#include "strategies/coordination/members.hpp"
#include "strategies/coordination/port.hpp"
#include "strategies/host/member_steps.hpp"
#include "strategies/strategy.hpp"

namespace troupe::coordination {

struct CoordinatorOptions {
  std::string strategy;  ///< its name, for messages
  strategies::Needs needs;
  std::uint32_t workers = 0;  ///< absent ones included
  std::uint32_t epochs = 1;
  std::uint32_t max_epochs = 0;  ///< the run ends after so many, earlier sessions included; 0 or ≥ epochs: no limit
  CheckpointPeriod checkpoints{};
  double max_s = 0;                           ///< of training, earlier sessions included; 0: no limit
  CheckpointPeriod evaluations{.epochs = 1};  ///< never by time
  bool evaluates_beside = false;  ///< while training goes on; the last model of a run is evaluated before the run ends
  WatchOptions watch{};
  WatchState watched{};  ///< of earlier sessions
  bool keeps_journal = false;
  bool resumed = false;              ///< there is a checkpoint already
  bool ends_with_member = false;     ///< the loss of any member ends the run, as in an MPI job
  std::uint64_t steps_before = 0;    ///< of earlier sessions, over all workers
  double trained_before_s = 0;       ///< of earlier sessions
  std::vector<Step> first_steps{};   ///< by rank: the step at which an initial member's host begins; none: 0
  std::vector<std::string> names{};  ///< of workers, for messages; none: "worker 1"
  std::string how_to_go_on{};        ///< the end of a message about a lost member that may come back
  std::string how_to_start_again{};  ///< the same of a run without a checkpoint
};

/// Not thread-safe. No method of it throws, but for what its port throws.
class Coordinator {
 public:
  /// Where the run is between two events.
  enum class State : std::uint8_t {
    starting,       ///< begin() has not been called
    training,       ///< leases are granted
    performing,     ///< training is paused: the port performs task()
    awaiting_disk,  ///< training is paused until a checkpoint is written
    ended,
  };
  /// Why training is paused.
  enum class Pause : std::uint8_t {
    first_checkpoint,  ///< of the state at step 0: a failure in the first epoch can go back to it
    boundary,          ///< an epoch has ended, a checkpoint is due, or the run ends: the model is taken
    admission,         ///< of newcomers
    segment,           ///< a new journal segment
    emergency,
    end,
  };

  /// `port` outlives the coordinator. `leases` is fresh or restored, and changed by nobody else.
  Coordinator(CoordinatorPort& port, CoordinatorOptions options, std::shared_ptr<data::LeaseScheduler> leases);

  /// The members at the beginning.
  struct InitialMembers {
    std::vector<SiteId> worker_sites{};  ///< by rank; none: all members are at site 0
    std::vector<SiteId> server_sites{};  ///< by shard
    std::vector<WorkerId> absent{};      ///< the run does not wait for them
  };
  void begin(InitialMembers initial_members);

  // Events. Those of workers that are no members, and all events after the end, have no effect.

  /// A worker wants `leases` more leases.
  void requested(WorkerId worker, std::uint32_t leases);
  /// A worker has ended or passed over `ended` steps since its host began. `done`: leases that have ended since its last report;
  /// `given_up`: those of steps passed over, where they are told apart (LeaseScheduler::give_up).
  void progressed(WorkerId worker, Step ended, std::span<const std::uint64_t> done,
                  std::span<const std::uint64_t> given_up = {});
  /// `code`: peer_lost, or program; see member_failed().
  void lost(WorkerId worker, const std::string& why, core::Errc code = core::Errc::peer_lost);
  /// The members at `site` do not reach those at `lost` any more.
  void site_lost(SiteId site, SiteId lost, const std::string& why);
  /// A member at `site` cannot go on, which ends the run. Errc::program at another site than 0: its members are lost. A run that ends of
  /// it ends with that code, and with no advice to go on: the program would fail again.
  void member_failed(SiteId site, const core::Error& error);
  /// A newcomer could take the place of `worker`.
  void arrived(WorkerId worker);
  void time_is_up();            ///< as when options.max_s is reached: the run ends at the next pause
  void interrupted();           ///< the user asks to stop
  void checkpoint_requested();  ///< the user asks for a checkpoint; training goes on after it
  void journal_full();          ///< a new segment is due
  void ticked();                ///< about once a second: time limits
  void answered(const Answer& answer);
  /// The evaluation beside training has ended.
  void scored(const Score& score);
  /// The checkpoint is on disk, or could not be written: then the one before stays good.
  void written(const core::Result<void>& result);
  /// Ends the run. In an emergency the message says so.
  void fail(core::Error error);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] Pause pause() const noexcept { return pause_; }     ///< REQUIRES performing or awaiting_disk
  [[nodiscard]] Task task() const noexcept { return order_.task; }  ///< REQUIRES performing
  [[nodiscard]] bool ended() const noexcept { return state_ == State::ended; }
  /// Whether an answer to the order of this number has an effect.
  [[nodiscard]] bool awaits(std::uint64_t number) const noexcept {
    return state_ == State::performing && number == order_.number;
  }
  [[nodiscard]] bool stops() const noexcept { return stop_; }  ///< at the next pause
  /// Why training has ended before the last epoch; none while it has not.
  [[nodiscard]] EarlyStop early_stop() const noexcept { return early_stop_; }
  [[nodiscard]] bool in_emergency() const noexcept { return emergency_.has_value(); }
  /// What the user can do when the run ends now of something that may not happen again.
  [[nodiscard]] const std::string& advice() const noexcept {
    return has_checkpoint_ ? options_.how_to_go_on : options_.how_to_start_again;
  }
  /// Training is paused for newcomers, or ends a pause with them.
  [[nodiscard]] bool admits() const noexcept { return pause_ == Pause::admission; }
  /// Whether a report of the worker counts: in an emergency the coordinator keeps its own account of steps.
  [[nodiscard]] bool counts(WorkerId worker) const { return !ended() && members_.has(worker) && !in_emergency(); }
  [[nodiscard]] const Members& members() const noexcept { return members_; }
  [[nodiscard]] const data::LeaseScheduler& leases() const noexcept { return *leases_; }
  [[nodiscard]] const strategies::MemberSteps& steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint32_t wants(WorkerId worker) const { return worker < wants_.size() ? wants_[worker] : 0; }
  [[nodiscard]] const EvaluationWatch& watch() const noexcept { return watch_; }
  [[nodiscard]] double trained_s() const;  ///< of this run, earlier sessions included
  [[nodiscard]] std::string name_of(WorkerId worker) const;

 private:
  /// What continues when a checkpoint is on disk.
  enum class AfterDisk : std::uint8_t { take_state, go_on, save_newest, end_emergency };
  enum class Disk : std::uint8_t { good, writing, failed };
  struct Emergency {
    std::string why;                          // which member is lost, and why that ends the run:
    core::Errc code = core::Errc::peer_lost;  // or program
    bool searching = false;                   // find_newest has been ordered
    bool saving = false;                      // no member is needed any more
    std::optional<WorkerId> newest;           // the worker with the most steps,
    Step steps = 0;                           // and their number, in this session
  };
  struct SiteReport {
    SiteId site = 0, lost = 0;
    std::string why;
  };

  /// A resumed run that has used up its time or its patience, or has reached its target, stops before any step, unless they are other ones
  /// now. True: it stops.
  [[nodiscard]] bool stop_if_over();
  void train();
  void serve(WorkerId worker, bool after_pause);
  void serve_all(bool after_pause);
  void check_limits();
  void stop_early(EarlyStop why);
  void record_training_time() { trained_s_ = trained_s(); }
  /// No further lease is granted; training is paused when the granted ones have ended.
  void request_pause();
  void pause_when_quiet();

  // While training is paused (coordinator_pause.cpp).
  void perform(Task task, WorkerId worker = 0, Step first_step = 0);
  void done(const Answer& answer);
  void begin_again();
  void at_boundary();
  void dismiss();
  void take_current_model();
  void take_model() { perform(Task::take_model, model_worker()); }
  void model_taken(const Answer& answer);
  void evaluate();
  void judge(const Score& score, const EvaluatedAt& at);
  [[nodiscard]] EvaluatedAt evaluated_at() const;
  [[nodiscard]] CheckpointSchedule::Position latest_evaluation() const;
  void evaluation_awaited();
  void decide();
  void new_segment();
  void take_segment();
  void take_members();
  void go_on();
  void finish();
  void records_collected();
  [[nodiscard]] bool last() const;
  [[nodiscard]] bool last_epoch_done() const;
  [[nodiscard]] bool epoch_limit_reached() const;
  [[nodiscard]] bool evaluates() const;
  [[nodiscard]] bool interrupted_by_user() const { return error_ && error_->code == core::Errc::interrupted; }
  [[nodiscard]] bool complete() const;
  [[nodiscard]] WorkerId model_worker() const;

  // Checkpoints (coordinator_checkpoints.cpp).
  void save();
  [[nodiscard]] bool score_is_missing() const;
  [[nodiscard]] bool pauses_to_save() const { return disk_ != Disk::writing && !beside_; }
  void await_score();
  void state_taken(const Answer& answer);
  void write(bool needed);
  void await_disk(AfterDisk then);
  void disk_ready();
  [[nodiscard]] bool must_be_written() const;
  [[nodiscard]] bool checkpoint_due() const;
  [[nodiscard]] CheckpointSchedule::Position position() const;

  // Members that come and go (coordinator_members.cpp).
  void lose_site(SiteId site, const std::string& why, core::Errc code = core::Errc::peer_lost);
  void announce();
  [[nodiscard]] bool may_admit() const;
  [[nodiscard]] bool newcomer_waits() const;
  void admit();
  void admit_next();
  void join(WorkerId worker, Step first_step);
  void newcomer_done();

  // Emergency (coordinator_emergency.cpp).
  void begin_emergency(const std::string& why, core::Errc code);
  /// True: an emergency starts now; the caller returns.
  [[nodiscard]] bool start_pending_emergency();
  void find_newest();
  void newest_found(const Answer& answer);
  void save_newest();
  void keep_newest();
  void write_newest();
  [[nodiscard]] bool is_still_newest(const Answer& answer) const;
  void emergency_saved();
  void end_emergency(const std::string& what);
  /// Of a run that ends of a lost member. `joint` stands before the advice.
  [[nodiscard]] core::Error ending_of(core::Errc code, std::string text, std::string_view joint) const;
  /// Over all workers, earlier sessions included: what the newest member has ended.
  [[nodiscard]] std::uint64_t emergency_steps() const;
  void end();

  CoordinatorPort& port_;
  CoordinatorOptions options_;
  std::shared_ptr<data::LeaseScheduler> leases_;
  Members members_;
  strategies::MemberSteps steps_;
  CheckpointSchedule schedule_;
  CheckpointSchedule evaluations_;
  std::optional<EvaluatedAt> beside_;  // the model that is evaluated beside training
  bool counts_ = false;                // the evaluation under way was due
  bool saves_after_ = false;           // after await_evaluation; else the next evaluation begins
  EvaluationWatch watch_;
  std::vector<std::uint32_t> wants_;      // by rank: leases requested, not granted yet
  std::vector<WorkerId> arrivals_;        // workers for which a newcomer is there
  std::uint32_t admissions_ = 0;          // in this pause; newcomers that were refused included
  std::vector<SiteReport> early_losses_;  // reported before begin()
  bool placed_ = false;                   // sites are known
  State state_ = State::starting;
  Pause pause_ = Pause::first_checkpoint;
  Order order_;  // the latest
  AfterDisk after_disk_ = AfterDisk::go_on;
  Disk disk_ = Disk::good;
  bool needed_ = false;          // the checkpoint being written must reach the disk
  bool has_checkpoint_ = false;  // on disk
  bool began_ = false;           // leases have been granted in this session
  bool fresh_epoch_ = false;     // no lease of the epoch has been granted
  bool evaluated_ = false;       // this epoch's end: the model, if an evaluation was due
  bool stop_ = false;            // at the next pause the run ends
  bool time_is_up_ = false;
  EarlyStop early_stop_ = EarlyStop::none;
  bool dismissed_ = false;        // no step follows
  bool checkpoint_owed_ = false;  // became due while another was written, or was asked for
  bool segment_due_ = false;
  std::uint64_t granted_ = 0;             // leases, earlier sessions included
  std::uint64_t segment_membership_ = 0;  // Membership::epoch with whose members the new segment begins
  double trained_s_ = 0;                  // until the latest pause
  Duration training_since_{0};
  std::optional<Emergency> emergency_;
  std::optional<core::Error> error_;
};

}  // namespace troupe::coordination
