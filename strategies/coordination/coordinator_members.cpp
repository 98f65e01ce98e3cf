// Members that are lost: whether the run goes on without them. Newcomers: whose place they take, and when.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "strategies/coordination/coordinator.hpp"

namespace troupe::coordination {

void Coordinator::site_lost(SiteId site, SiteId lost, const std::string& why) {
  if (!placed_) return early_losses_.push_back({site, lost, why});
  if (ended() || !members_.lives(site) || !members_.lives(lost)) return;
  if (site == 0) return lose_site(lost, why);
  if (lost == 0) return lose_site(site, why);
  // A worker that cannot reach the centre or its group is lost. Otherwise only the peer messages between the two sites are lost.
  if (members_.has_center(lost) || options_.needs.group)
    return lose_site(lost, fmt::format("site {} does not reach it: {}", site, why));
  for (const auto one : members_.at(site))
    for (const auto other : members_.at(lost)) port_.disconnected(one, other);
}

void Coordinator::lose_site(SiteId site, const std::string& why, core::Errc code) {
  for (const auto worker : members_.at(site)) lost(worker, why, code);
}

core::Error Coordinator::ending_of(core::Errc code, std::string text, std::string_view joint) const {
  if (code != core::Errc::program) text += fmt::format("{}{}", joint, advice());
  return {code, std::move(text)};
}

/// A strategy whose workers share no collective goes on with the remaining workers; the lost worker's leases return.
void Coordinator::lost(WorkerId worker, const std::string& why, core::Errc code) {
  if (ended() || !members_.has(worker)) return;
  members_.remove(worker);
  std::erase(arrivals_, worker);
  wants_[worker] = 0;
  port_.removed(worker);
  const bool any = members_.count() > 0;
  if (in_emergency()) return any || emergency_->saving ? void() : end_emergency("no worker is left");
  // The reason of a program names its worker.
  const auto lost = code == core::Errc::program ? why : fmt::format("{} is lost: {}", name_of(worker), why);
  const auto fail_with = [&](const std::string& text) { fail(ending_of(code, text, ": ")); };
  if (members_.with_center(worker)) return fail_with(lost + "; and with it its part of the centre");
  if (options_.ends_with_member || options_.needs.group) {
    const auto text = options_.ends_with_member
                          ? lost + "; that ends an MPI job"
                          : fmt::format("{}; the others of {} cannot take a step without it", lost, options_.strategy);
    return options_.needs.whole_steps && any ? begin_emergency(text, code) : fail_with(text);
  }
  if (!any) return fail_with(lost + "; no worker is left");
  port_.lost({worker, why, !options_.needs.in_step, leases_->lost(worker)});
  announce();
  port_.find_replacement(worker);
  if (state_ != State::training) return;
  serve_all(false);  // the leases that have returned
  pause_when_quiet();
}

void Coordinator::announce() {
  members_.announce();
  port_.membership_changed(members_.membership());
}

// ---- newcomers

void Coordinator::arrived(WorkerId worker) {
  if (ended() || worker >= wants_.size() || members_.has(worker)) return;
  if (std::ranges::find(arrivals_, worker) != arrivals_.end()) return;
  arrivals_.push_back(worker);
  if (!options_.needs.in_step && !beside_) request_pause();  // else it joins at an epoch's end, or later
}

/// In step a newcomer begins with a round of the epoch that begins. It loads a checkpoint, so the latest one must have been written. Where
/// workers are lost as fast as newcomers come, a pause must end all the same. On demand it waits for a score that its checkpoint misses: the
/// others do not.
bool Coordinator::may_admit() const {
  return !stop_ && !arrivals_.empty() && disk_ != Disk::failed && admissions_ < options_.workers &&
         (options_.needs.in_step ? fresh_epoch_ : !score_is_missing());
}

/// Whether a newcomer that the last pause did not admit waits for the next one.
bool Coordinator::newcomer_waits() const {
  return state_ == State::training && !options_.needs.in_step && !arrivals_.empty() && disk_ != Disk::failed &&
         !beside_;
}

/// Training is paused, and no exchange is pending: the model is saved, and the newcomers begin with it.
void Coordinator::admit() {
  pause_ = Pause::admission;
  leases_->pause();  // an epoch that has just begun is not paused yet
  // In step, an answer that a round still owes must not be taken for an answer to the newcomer's requests.
  options_.needs.in_step ? perform(Task::settle_workers) : take_current_model();
}

void Coordinator::admit_next() {
  if (start_pending_emergency()) return;
  if (!may_admit()) return go_on();
  const auto worker = arrivals_.back();
  arrivals_.pop_back();
  ++admissions_;
  perform(Task::prepare_newcomer, worker, steps_.of_newcomer(options_.needs.in_step, members_.list()));
}

/// The newcomer is a new member, with the centre's parameters and a fresh rule.
void Coordinator::join(WorkerId worker, Step first_step) {
  std::erase(arrivals_, worker);  // it was announced again while it was prepared
  steps_.joined(worker, first_step);
  members_.add(worker);
  leases_->joined(worker);
  announce();  // the servers know the newcomer before it may send them requests
  perform(Task::begin_newcomer, worker);
}

void Coordinator::newcomer_done() { may_admit() ? admit() : go_on(); }

}  // namespace troupe::coordination
