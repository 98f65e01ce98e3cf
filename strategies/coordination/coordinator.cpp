#include "strategies/coordination/coordinator.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace troupe::coordination {

namespace {

std::vector<Step> first_steps(const CoordinatorOptions& options) {
  auto steps = options.first_steps;
  steps.resize(options.workers, 0);
  return steps;
}

}  // namespace

const char* name(Task task) noexcept {
  static constexpr std::array<const char*, kTasks> kNames{
      "dismiss_workers",  "settle_workers", "await_peer_messages", "take_model",     "evaluate",
      "await_evaluation", "take_state",     "prepare_newcomer",    "begin_newcomer", "take_members",
      "collect_records",  "begin_segment",  "find_newest"};
  return kNames[static_cast<std::size_t>(task)];
}

Coordinator::Coordinator(CoordinatorPort& port, CoordinatorOptions options,
                         std::shared_ptr<data::LeaseScheduler> leases)
    : port_(port),
      options_(std::move(options)),
      leases_(std::move(leases)),
      members_(options_.workers),
      steps_(first_steps(options_)),
      schedule_(options_.checkpoints),
      evaluations_(options_.evaluations),
      watch_(options_.watch, options_.watched),
      wants_(options_.workers, 0),
      has_checkpoint_(options_.resumed),
      began_(options_.resumed),
      granted_(options_.steps_before),
      trained_s_(options_.trained_before_s) {
  schedule_.saved(position());
  evaluations_.saved(latest_evaluation());
  if (options_.watch.lr_patience == 0) leases_->set_lr_factor(1);  // a resume with another schedule
}

/// Of an earlier session: the next evaluation comes where it would have come without an interruption.
CheckpointSchedule::Position Coordinator::latest_evaluation() const {
  const auto& watched = options_.watched;
  const auto& latest = watched.begun_at.leases > watched.last_at.leases ? watched.begun_at : watched.last_at;
  const auto done = leases_->done_count(), since = done - std::min(done, latest.leases);
  return {.granted = granted_ - std::min(granted_, since), .epochs = static_cast<std::int64_t>(latest.epoch)};
}

void Coordinator::begin(InitialMembers initial_members) {
  members_.place(std::move(initial_members.worker_sites), std::move(initial_members.server_sites));
  // As if they had been lost before the first step.
  for (const auto worker : initial_members.absent) {
    members_.remove(worker);
    leases_->lost(worker);
    port_.removed(worker);
    port_.absent(worker);
    port_.find_replacement(worker);
  }
  if (!initial_members.absent.empty()) announce();
  placed_ = true;
  for (const auto& report : std::exchange(early_losses_, {})) site_lost(report.site, report.lost, report.why);
  if (state_ != State::starting) return;
  leases_->pause();  // until train(): no lease is granted before it is known whether the run goes on
  if (!options_.resumed) {
    pause_ = Pause::first_checkpoint;
    return take_current_model();
  }
  if (stop_if_over()) return at_boundary();
  if (leases_->epoch_done()) return at_boundary();  // interrupted in an epoch's last step, or to train longer
  if (watch_.awaits(leases_->done_count())) return at_boundary();  // killed during an evaluation
  train();
}

bool Coordinator::stop_if_over() {
  if (options_.max_s > 0 && trained_s_ >= options_.max_s) return stop_ = time_is_up_ = true;
  const auto why = watch_.stopped();
  if (why == EarlyStop::none) return false;
  stop_ = true;
  if (!last_epoch_done()) stop_early(why);
  return true;
}

// ---- training

void Coordinator::train() {
  if (start_pending_emergency()) return;
  record_training_time();
  state_ = State::training;
  began_ = true;
  fresh_epoch_ = false;
  admissions_ = 0;
  training_since_ = port_.now();
  if (checkpoint_owed_ && checkpoint_due())
    return at_boundary();  // the one before reached the disk during the pause, or its score was known
  leases_->resume();
  serve_all(true);
}

void Coordinator::requested(WorkerId worker, std::uint32_t leases) {
  if (ended() || !members_.has(worker)) return;
  wants_[worker] += leases;
  if (state_ != State::training) return;
  serve(worker, false);
  pause_when_quiet();  // a checkpoint is due, and all granted leases have ended
}

void Coordinator::serve_all(bool after_pause) {
  for (WorkerId worker = 0; worker < wants_.size(); ++worker) serve(worker, after_pause);
}

/// A port may ask for more from inside grant().
void Coordinator::serve(WorkerId worker, bool after_pause) {
  while (state_ == State::training && wants_[worker] > 0) {
    std::vector<data::Lease> leases;
    while (wants_[worker] > 0) {
      // Workers report too rarely to count steps by their reports. A round counts as a whole: who asks first must not matter.
      const auto begun = granted_ + leases_->owed();
      if ((pauses_to_save() && schedule_.steps_due(begun)) || evaluations_.steps_due(begun)) leases_->pause();
      const auto lease = leases_->grant(worker);
      if (!lease) break;
      --wants_[worker];
      ++granted_;
      leases.push_back(*lease);
    }
    if (leases.empty()) return;
    port_.grant(worker, leases, after_pause);
  }
}

void Coordinator::progressed(WorkerId worker, Step ended, std::span<const std::uint64_t> done,
                             std::span<const std::uint64_t> given_up) {
  if (!counts(worker)) return;
  steps_.ended(worker, ended);
  for (const auto lease : done) leases_->done(worker, lease);
  for (const auto lease : given_up) leases_->give_up(worker, lease);
  if (newcomer_waits()) leases_->pause();
  check_limits();
  pause_when_quiet();
}

void Coordinator::check_limits() {
  if (state_ != State::training) return;
  const double now_s = trained_s();
  if (options_.max_s > 0 && now_s >= options_.max_s) stop_ = time_is_up_ = true;
  if (stop_ || (pauses_to_save() && schedule_.time_due(now_s))) leases_->pause();
}

void Coordinator::ticked() {
  check_limits();
  pause_when_quiet();
}

void Coordinator::journal_full() {
  if (ended()) return;
  segment_due_ = true;
  request_pause();
}

void Coordinator::time_is_up() {
  if (ended()) return;
  stop_ = time_is_up_ = true;
  request_pause();
}

void Coordinator::checkpoint_requested() {
  if (ended() || in_emergency()) return;
  checkpoint_owed_ = true;
  if (state_ == State::training && pauses_to_save()) request_pause();
}

void Coordinator::interrupted() {
  if (ended()) return;
  if (!error_) {
    const auto& advice = options_.how_to_go_on;
    error_ = core::Error{core::Errc::interrupted, advice.empty() ? "interrupted" : "interrupted; " + advice};
  }
  stop_ = true;
  // A run that ends does not wait for a newcomer.
  const bool preparing = state_ == State::performing && order_.task == Task::prepare_newcomer;
  request_pause();
  if (preparing) newcomer_done();
}

void Coordinator::request_pause() {
  leases_->pause();
  pause_when_quiet();
}

void Coordinator::pause_when_quiet() {
  if (state_ == State::training && leases_->quiet()) at_boundary();
}

double Coordinator::trained_s() const {
  return state_ == State::training ? trained_s_ + core::seconds(port_.now() - training_since_) : trained_s_;
}

// ---- the end

void Coordinator::member_failed(SiteId site, const core::Error& error) {
  // Errors from lost sites are ignored. In an emergency all member errors are ignored, because they follow from the loss.
  if (!members_.lives(site)) return;
  // Who stops a run often signals its programs, too: one that ends by itself then has not failed.
  const auto code = error.code == core::Errc::program && stops() ? core::Errc::peer_lost : error.code;
  if (error.code == core::Errc::program && site != 0) return lose_site(site, error.message, code);
  if (!in_emergency()) fail({code, error.message});
}

void Coordinator::fail(core::Error error) {
  if (ended()) return;
  if (in_emergency() && !error.message.starts_with(emergency_->why)) {
    error = ending_of(emergency_->code, fmt::format("{}; {}", emergency_->why, error.message), "; ");
  }
  error_ = std::move(error);
  end();
}

void Coordinator::end() {
  if (ended()) return;
  record_training_time();
  state_ = State::ended;
  port_.ended(error_);
}

std::string Coordinator::name_of(WorkerId worker) const {
  return worker < options_.names.size() ? options_.names[worker] : fmt::format("worker {}", worker);
}

}  // namespace troupe::coordination
