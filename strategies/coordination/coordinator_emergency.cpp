// Emergency: when members share every step and one is lost, the last step that all others have ended is saved.
#include <fmt/format.h>

#include "strategies/coordination/coordinator.hpp"

namespace troupe::coordination {

/// REQUIRES Needs::whole_steps, and a remaining member.
void Coordinator::begin_emergency(const std::string& why, core::Errc code) {
  emergency_.emplace();
  emergency_->why = why;
  emergency_->code = code;
  port_.warn(why);
  leases_->pause();
  if (state_ == State::training || state_ == State::starting) find_newest();  // else after the task, or the disk
}

bool Coordinator::start_pending_emergency() {
  if (!in_emergency() || emergency_->searching || ended()) return false;
  find_newest();
  return true;
}

/// A message of the lost member may have reached only some of the others: they are at most one step apart.
void Coordinator::find_newest() {
  pause_ = Pause::emergency;
  emergency_->searching = true;
  emergency_->newest.reset();
  perform(Task::find_newest);
}

void Coordinator::newest_found(const Answer& answer) {
  if (!answer.newest) return end_emergency("no survivor reported its last step");
  emergency_->newest = answer.newest;
  emergency_->steps = answer.steps;
  disk_ == Disk::writing ? await_disk(AfterDisk::save_newest) : save_newest();
}

/// If the worker takes another step or is lost meanwhile, the search begins again.
void Coordinator::save_newest() {
  if (has_checkpoint_ && disk_ != Disk::failed && emergency_steps() <= schedule_.saved().granted)
    return end_emergency("the newest checkpoint has all that they did");
  take_model();
}

bool Coordinator::is_still_newest(const Answer& answer) const {
  return members_.has(*emergency_->newest) && answer.steps == emergency_->steps;
}

/// REQUIRES copies of the model and of the state, both after exactly Emergency::steps steps.
void Coordinator::keep_newest() {
  const auto steps = emergency_->steps;
  if (auto back = leases_->rewind(steps); !back) return end_emergency(back.error().message);
  for (WorkerId worker = 0; worker < options_.workers; ++worker) steps_.ended(worker, steps);
  port_.rewound(steps);
  emergency_->saving = true;
  score_is_missing() ? perform(Task::await_evaluation) : write_newest();
}

void Coordinator::write_newest() {
  await_disk(AfterDisk::end_emergency);
  write(false);
}

void Coordinator::emergency_saved() {
  end_emergency(disk_ == Disk::failed
                    ? "what they held could not be saved"
                    : fmt::format("step {}, the last that all had ended, is saved", emergency_steps()));
}

std::uint64_t Coordinator::emergency_steps() const {
  return options_.steps_before + emergency_->steps * options_.workers;
}

void Coordinator::end_emergency(const std::string& what) {
  fail(ending_of(emergency_->code, fmt::format("{}; {}", emergency_->why, what), "; "));
}

}  // namespace troupe::coordination
