// Checkpoints: their contents are copied while training is paused; they are written while it goes on.
#include <utility>

#include "strategies/coordination/coordinator.hpp"

namespace troupe::coordination {

/// REQUIRES the model's copy.
void Coordinator::save() {
  // A user who interrupts may not wait: a first checkpoint is written at once, and go_on() has the score saved.
  if (score_is_missing() && !(dismissed_ && interrupted_by_user())) return await_score();
  // At most one copy of the state waits for the disk.
  if (must_be_written() && disk_ == Disk::writing) return await_disk(AfterDisk::take_state);
  perform(Task::take_state, model_worker());
}

/// A resumed run repeats an evaluation of the checkpoint's own model; the score of an earlier one must be in the checkpoint. Training goes on
/// until it is known.
bool Coordinator::score_is_missing() const { return beside_ && beside_->leases != leases_->done_count(); }

void Coordinator::await_score() {
  saves_after_ = true;
  perform(Task::await_evaluation);
}

/// The run goes on when the checkpoint is on disk: its first and last one, and the one that a newcomer loads.
bool Coordinator::must_be_written() const { return !began_ || last() || pause_ == Pause::admission; }

void Coordinator::state_taken(const Answer& answer) {
  if (pause_ == Pause::emergency) return is_still_newest(answer) ? keep_newest() : find_newest();
  const bool waits = must_be_written();
  if (waits) await_disk(AfterDisk::go_on);
  // A reason to stop that has come meanwhile is followed by another checkpoint, the last one.
  write(waits && pause_ != Pause::admission && (!began_ || dismissed_));
  if (!waits) go_on();
}

/// `needed`: a run whose checkpoint cannot be written ends with the error. Else it is a warning: the old one stays good.
void Coordinator::write(bool needed) {
  schedule_.saved(position());
  disk_ = Disk::writing;
  needed_ = needed;
  checkpoint_owed_ = false;
  port_.write_checkpoint();
}

void Coordinator::await_disk(AfterDisk then) {
  state_ = State::awaiting_disk;
  after_disk_ = then;
}

void Coordinator::written(const core::Result<void>& result) {
  if (ended() || disk_ != Disk::writing) return;
  disk_ = result ? Disk::good : Disk::failed;
  has_checkpoint_ = has_checkpoint_ || result;
  if (!result && needed_) {
    error_ = core::Error{result.error().code, "checkpoint: " + result.error().message};
    stop_ = true;
  }
  if (state_ == State::awaiting_disk) return disk_ready();
  // One at a time: a checkpoint that became due while this one was written is taken now.
  if (state_ == State::training && checkpoint_due()) request_pause();
}

void Coordinator::disk_ready() {
  switch (after_disk_) {
    case AfterDisk::take_state: return start_pending_emergency() ? void() : perform(Task::take_state, model_worker());
    case AfterDisk::go_on: return pause_ == Pause::admission ? admit_next() : go_on();
    case AfterDisk::save_newest: return save_newest();
    case AfterDisk::end_emergency: return emergency_saved();
  }
}

bool Coordinator::checkpoint_due() const {
  if (last()) return true;
  return disk_ != Disk::writing && !score_is_missing() &&
         (checkpoint_owed_ || schedule_.due(position(), leases_->epoch_done()));
}

CheckpointSchedule::Position Coordinator::position() const {
  return {.granted = granted_,
          .epochs = leases_->epoch() + std::int64_t{leases_->epoch_done() ? 1 : 0},
          .trained_s = trained_s()};
}

}  // namespace troupe::coordination
