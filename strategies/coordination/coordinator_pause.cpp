// While training is paused: one task after the other, and what follows from each.
#include <utility>

#include "strategies/coordination/coordinator.hpp"

namespace troupe::coordination {

/// The last thing that a transition does: the answer may come from inside.
void Coordinator::perform(Task task, WorkerId worker, Step first_step) {
  record_training_time();
  state_ = State::performing;
  order_ = {order_.number + 1, task, worker, first_step};
  port_.perform(order_);
}

void Coordinator::answered(const Answer& answer) {
  if (!awaits(answer.number)) return;
  ++order_.number;  // a second answer is none
  if (pause_ == Pause::end) return records_collected();
  if (start_pending_emergency()) return;
  answer.outcome == TaskOutcome::interrupted ? begin_again() : done(answer);
}

void Coordinator::done(const Answer& answer) {
  const bool segment = pause_ == Pause::segment;
  switch (order_.task) {
    case Task::dismiss_workers: return take_current_model();
    case Task::settle_workers:
      if (!segment) return take_current_model();
      return options_.needs.peers ? perform(Task::await_peer_messages) : take_segment();
    case Task::await_peer_messages: return segment ? take_segment() : take_model();
    case Task::take_model: return model_taken(answer);
    case Task::evaluate: judge(answer.score, evaluated_at()); return decide();
    case Task::await_evaluation: return evaluation_awaited();
    case Task::take_state: return state_taken(answer);
    case Task::prepare_newcomer:
      if (answer.outcome == TaskOutcome::done) return join(order_.worker, order_.first_step);
      port_.find_replacement(order_.worker);
      return newcomer_done();
    case Task::begin_newcomer:
      if (options_.keeps_journal) segment_due_ = true;  // a replay cannot know what the newcomer begins with
      return newcomer_done();
    case Task::take_members: return perform(Task::collect_records);
    case Task::collect_records:
      return segment_membership_ == members_.epoch() ? perform(Task::begin_segment) : new_segment();
    case Task::begin_segment:
      segment_due_ = false;  // only the segment before can have filled up meanwhile
      return go_on();        // a reason to stop may have come meanwhile
    case Task::find_newest: return newest_found(answer);
  }
}

/// A member was lost during the task, and what it had is missing.
void Coordinator::begin_again() {
  switch (pause_) {
    case Pause::emergency: return find_newest();
    case Pause::segment: return new_segment();
    case Pause::admission: return order_.task == Task::begin_newcomer ? newcomer_done() : admit();
    default: return take_current_model();
  }
}

/// Training is paused, at an epoch's end, for a checkpoint, a segment or newcomers, or because the run ends.
void Coordinator::at_boundary() {
  pause_ = Pause::boundary;
  if (time_is_up_ && !last_epoch_done()) stop_early(EarlyStop::max_seconds);
  if (!stop_ && epoch_limit_reached()) {
    stop_ = true;
    stop_early(EarlyStop::max_epochs);
  }
  if (last()) return dismiss();
  if (segment_due_ && !leases_->epoch_done() && !checkpoint_due() && !evaluates()) return go_on();
  take_current_model();
}

/// Workers push what they still hold before the last copy of the model is taken.
void Coordinator::dismiss() {
  pause_ = Pause::boundary;
  dismissed_ = true;
  perform(Task::dismiss_workers);
}

void Coordinator::take_current_model() {
  // Peer messages in transit are a part of a weighted model. The last ones are awaited too: they are in the journal then.
  const bool weighted = options_.needs.model == strategies::ModelHome::weighted;
  options_.needs.peers && (weighted || dismissed_) ? perform(Task::await_peer_messages) : take_model();
}

void Coordinator::model_taken(const Answer& answer) {
  switch (pause_) {
    case Pause::segment: return take_members();
    case Pause::emergency: return is_still_newest(answer) ? perform(Task::take_state, model_worker()) : find_newest();
    case Pause::boundary: return evaluates() ? evaluate() : decide();
    default: return save();
  }
}

/// When an evaluation is due, at the run's end, and where a limit ends the run: its user waits for a result. An interrupt asks for none. A
/// resumed run repeats the evaluation of its checkpoint's model, but for one that was not due.
bool Coordinator::evaluates() const {
  if (dismissed_ && early_stop_ != EarlyStop::none && !interrupted_by_user()) return true;
  const bool resumed_here = granted_ == options_.steps_before;  // no lease since
  const auto done = leases_->done_count();
  const bool repeats = resumed_here && (watch_.awaits(done) || (leases_->epoch_done() && watch_.has_counted(done)));
  const bool due = repeats || evaluations_.due(position(), leases_->epoch_done());
  if (!leases_->epoch_done()) return due && !stop_;
  return due || last_epoch_done() || (stop_ && (!interrupted_by_user() || watch_.has_seen(done)));
}

EvaluatedAt Coordinator::evaluated_at() const {
  return {leases_->done_count(), leases_->epoch_position(), trained_s()};
}

/// A fall of the learning rate that an evaluation beside training has led to takes effect when the next one begins: at the same lease in
/// every run of workers that are in step. An evaluation that is not due, because the run ends here, moves neither that nor the next one:
/// the run may be resumed.
void Coordinator::evaluate() {
  if (beside_) {
    saves_after_ = false;
    return perform(Task::await_evaluation);
  }
  counts_ = evaluations_.due(position(), leases_->epoch_done()) || watch_.awaits(leases_->done_count());
  if (counts_) {
    if (options_.watch.lr_patience > 0) leases_->set_lr_factor(watch_.state().lr_factor);
    evaluations_.saved(position());
  }
  if (!options_.evaluates_beside || last()) return perform(Task::evaluate);
  beside_ = evaluated_at();
  watch_.begin(*beside_);
  port_.evaluate_beside();
  decide();
}

/// Where the run stops meanwhile, its last model is evaluated: after the workers are dismissed.
void Coordinator::evaluation_awaited() {
  if (pause_ == Pause::emergency) return write_newest();
  if (stop_ && !dismissed_ && pause_ == Pause::boundary) return go_on();
  saves_after_ ? save() : evaluate();
}

void Coordinator::scored(const Score& score) {
  if (ended() || !beside_) return;
  judge(score, *std::exchange(beside_, std::nullopt));
  if (state_ == State::training && (stop_ || checkpoint_due() || newcomer_waits())) request_pause();
}

void Coordinator::judge(const Score& score, const EvaluatedAt& at) {
  const auto verdict = watch_.look(score, at, counts_);
  // Before any lease that follows: the leases of a round have the same learning rate.
  if (verdict.falls && !options_.evaluates_beside) leases_->set_lr_factor(watch_.state().lr_factor);
  if (verdict.improved || verdict.falls) port_.judged(verdict);
  if (verdict.stop == EarlyStop::none) return;
  stop_ = true;
  if (!last_epoch_done() && !in_emergency()) stop_early(verdict.stop);
}

/// The model has been taken, and evaluated if that was due: whether the run stops, and whether a checkpoint is due.
void Coordinator::decide() {
  if (leases_->epoch_done()) evaluated_ = true;
  if (stop_ && !dismissed_) return go_on();
  checkpoint_owed_ = checkpoint_owed_ || schedule_.due(position(), leases_->epoch_done());
  checkpoint_due() ? save() : go_on();
}

/// A member that is lost meanwhile is no member of the new segment: the others report their states again.
void Coordinator::new_segment() {
  pause_ = Pause::segment;
  segment_due_ = false;
  leases_->pause();  // an epoch that has just begun is not paused yet
  perform(Task::settle_workers);
}

/// Without servers the model is what the workers have at this moment.
void Coordinator::take_segment() { options_.needs.servers ? take_members() : take_model(); }

void Coordinator::take_members() {
  segment_membership_ = members_.epoch();
  perform(Task::take_members);
}

/// What the pause was for is done.
void Coordinator::go_on() {
  if (ended()) return;
  if (!complete() && start_pending_emergency()) return;
  if (leases_->epoch_done() && began_) {
    // A loss during the pause has ended the epoch: its rest suits no remaining worker (drop_tail).
    if (!evaluated_ && !dismissed_ && pause_ != Pause::emergency) return at_boundary();
    if (last_epoch_done()) {
      if (interrupted_by_user()) error_.reset();  // after the last step: the run is complete
      return finish();
    }
    if (!stop_) {
      leases_->next_epoch();
      evaluated_ = false;
      fresh_epoch_ = true;
    }
  }
  if (!stop_ && may_admit()) return admit();
  if (!stop_ && segment_due_) return new_segment();
  if (!stop_) return train();
  if (dismissed_ && score_is_missing()) return await_score();
  if (dismissed_ || !began_) return finish();
  dismiss();  // the reason to stop came while the model was taken: it is taken again
}

void Coordinator::finish() {
  pause_ = Pause::end;
  perform(Task::collect_records);
}

void Coordinator::records_collected() {
  if (!complete() && start_pending_emergency()) return;
  // Interrupted after the last step: the run is complete.
  if (complete() && interrupted_by_user()) error_.reset();
  end();
}

/// No step follows: a stop was requested, or the last epoch is done.
bool Coordinator::last() const { return stop_ || last_epoch_done(); }

bool Coordinator::last_epoch_done() const { return leases_->epoch_done() && leases_->epoch() + 1 >= options_.epochs; }

bool Coordinator::epoch_limit_reached() const {
  return options_.max_epochs > 0 && leases_->epoch_done() && leases_->epoch() + 1 >= options_.max_epochs &&
         !last_epoch_done();
}

void Coordinator::stop_early(EarlyStop why) {
  if (early_stop_ != EarlyStop::none) return;
  early_stop_ = why;
  port_.stops_early(why);
}

/// The last epoch is done, and its checkpoint is on disk: no loss of a member matters any more.
bool Coordinator::complete() const { return last_epoch_done() && began_ && disk_ != Disk::failed; }

/// The worker that is asked for the model, of those whose parameters are the model.
WorkerId Coordinator::model_worker() const {
  if (emergency_ && emergency_->newest) return *emergency_->newest;
  const auto members = members_.list();
  return members.empty() ? 0 : members.front();
}

}  // namespace troupe::coordination
