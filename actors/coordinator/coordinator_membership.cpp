// Members that come and go: what the others, the journal and the recorder are told. The ledger of samples.
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/text/plural.hpp"

namespace troupe::actors {

using strategies::WorkerId;

namespace {

std::uint64_t samples_of(const coordination::Loss& lost) {
  std::uint64_t samples = 0;
  for (const auto& lease : lost.leases) samples += static_cast<std::uint64_t>(lease.samples);
  return samples;
}

/// ", but for 40 samples of steps under way, which are passed over"; empty when all of it is granted again.
std::string passed_over(const coordination::Loss& lost) {
  const auto samples = samples_of(lost);
  if (lost.again || samples == 0) return {};
  return fmt::format(", but for {} of steps under way, which are passed over", core::counted(samples, "sample"));
}

}  // namespace

void CoordinatorBody::membership_changed(const strategies::Membership& membership) {
  const MembershipNews news{membership.epoch, membership.workers};
  if (actors_.exchanger) self_->send(actors_.exchanger, news);
  for (const auto& server : actors_.servers) self_->send(server, news);
  for (const auto w : news.workers) self_->send(actors_.workers[w], news);
}

void CoordinatorBody::removed(WorkerId worker) {
  own_states_.erase(worker);
  running_programs_.erase(worker);
  peer_messages_.lost(worker);
  silence_.forget(worker);
  ledger_.left(worker, session_s());
  gone_.insert(worker);
  // A newcomer may come to the same site, and has reported nothing yet.
  std::erase_if(closed_endpoints_, [site = site_of(worker)](const ClosedEndpoint& closed) {
    return closed.news.lost == site || (site != 0 && closed.news.site == site);
  });
  if (!actors_.workers[worker]) return;
  self_->send(actors_.workers[worker], Halt{});
  self_->send(actors_.loaders[worker], Halt{});
}

void CoordinatorBody::lost(const coordination::Loss& loss) {
  const auto& members = machine_.members();
  gone_.erase(loss.worker);
  tell_member(loss.worker, MemberReport::Event::lost, loss.why);
  ledger_.lost(samples_of(loss), loss.again);
  note(Note::Level::warning,
       fmt::format("{} is lost: {}; its batches return{}, {} of {} workers go on", machine_.name_of(loss.worker),
                   loss.why, passed_over(loss), members.count(), setup_.started.workers));
  // Before any record of the worker that takes its place.
  if (keeps_journal()) journal_.add(encode(experiment::LostRecord{loss.worker, loss.again, loss.leases}));
  flush_journal();
}

void CoordinatorBody::absent(WorkerId worker) {
  running_programs_.erase(worker);
  gone_.erase(worker);
  tell_member(worker, MemberReport::Event::absent, {});
  if (keeps_journal()) journal_.add(encode(experiment::AbsentRecord{worker}));
  note(Note::Level::info, fmt::format("{} is not connected yet", machine_.name_of(worker)));
}

// ---- the recorder's lines

/// A run that fails before it has begun took no time.
double CoordinatorBody::session_s() const { return actors_.recorder ? core::seconds(setup_.clock->now() - began_) : 0; }

void CoordinatorBody::tell_member(WorkerId worker, MemberReport::Event event, const std::string& reason) {
  self_->send(actors_.recorder, MemberReport{.worker = worker,
                                             .event = event,
                                             .node = worker < setup_.nodes.size() ? setup_.nodes[worker] : "",
                                             .reason = one_line(reason),
                                             .steps = progress_.of(worker).steps,
                                             .epoch = setup_.leases->epoch_position(),
                                             .train_s = machine_.trained_s(),
                                             .members = static_cast<std::uint32_t>(machine_.members().count())});
}

/// Before the machine begins: it tells which of them are absent.
void CoordinatorBody::tell_beginning() {
  for (WorkerId w = 0; w < actors_.workers.size(); ++w) {
    if (!actors_.workers[w]) continue;
    ledger_.joined(w, 0);
    if (w < setup_.nodes.size() && !setup_.nodes[w].empty()) tell_member(w, MemberReport::Event::began, {});
  }
}

/// Losses that end the run are not told by lost().
void CoordinatorBody::tell_fatal_losses(const std::optional<core::Error>& error) {
  for (const auto worker : std::exchange(gone_, {}))
    tell_member(worker, MemberReport::Event::lost, error ? error->message : std::string());
}

void CoordinatorBody::hear(const WorkerProgress& progress) {
  const auto worker = progress.worker;
  const auto silent_s = silence_.heard(worker, progress.done.size() + progress.given_up.size(), session_s());
  if (silent_s) tell_member(worker, MemberReport::Event::heard, fmt::format("after {:.1f} s", *silent_s));
}

void CoordinatorBody::look_for_silence() {
  if (machine_.state() != coordination::Coordinator::State::training) return;
  for (const auto& silent : silence_.look(session_s()))
    tell_member(silent.worker, MemberReport::Event::silent, fmt::format("no report for {:.1f} s", silent.for_s));
  // Perhaps no worker waits for it, so that no exchange's deadline ends this: its leases alone would keep the run from its end.
  for (const auto& silent : silence_.overdue(session_s(), core::seconds(setup_.step_silence)))
    machine_.lost(silent.worker,
                  fmt::format("it has batches to compute, and has reported nothing for {:.0f} s (a greater "
                              "exchange.deadline_s allows longer steps)",
                              silent.for_s));
}

LedgerReport CoordinatorBody::ledger() const {
  return ledger_.report(setup_.leases->accounts(), progress_.workers(), session_s());
}

/// About once a second while something changes, and at the end.
void CoordinatorBody::tell_ledger() {
  auto now = ledger();
  auto same = now;
  same.possible = told_ledger_.possible;
  same.wall_s = told_ledger_.wall_s;
  if (same == told_ledger_ && !machine_.ended()) return;
  self_->send(actors_.recorder, now);
  told_ledger_ = std::move(now);
}

}  // namespace troupe::actors
