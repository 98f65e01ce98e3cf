#include "service/jobs/job_state.hpp"

#include <algorithm>
#include <csignal>
#include <string>

#include <fmt/format.h>

namespace troupe::service {
namespace {

using Kind = JobEvent::Kind;
using Next = core::Result<JobTransition>;

Next refuse(std::string_view verb, JobState state, std::string_view hint) {
  return core::fail(core::Errc::usage, fmt::format("a job that is {} cannot be {}: {}", name(state), verb, hint));
}

/// The state after the end of a process. A process that was asked to stop and got a signal has done what it was asked for.
JobState end_state(JobState before, const JobEvent& end) {
  const bool on_request = end.signal == SIGINT || end.signal == SIGTERM ||
                          (end.signal == 0 && end.code == core::exit_code(core::Errc::interrupted));
  if (on_request) return JobState::stopped;
  if (end.signal != 0) return before == JobState::stopping ? JobState::stopped : JobState::failed;
  return end.code == 0 ? JobState::done : JobState::failed;
}

Next of_waiting(const JobEvent& event) {
  switch (event.kind) {
    case Kind::start:
    case Kind::resume: return refuse("started", JobState::queued, "it starts when a slot is free");
    case Kind::save: return refuse("checkpointed", JobState::queued, "it has not begun");
    case Kind::stop:
    case Kind::kill: return JobTransition{JobState::stopped, JobEffect::none};
    case Kind::remove: return JobTransition{JobState::queued, JobEffect::forget};
    case Kind::begin: return JobTransition{JobState::running, JobEffect::spawn};
    default: return JobTransition{JobState::queued, JobEffect::none};
  }
}

Next of_active(JobState state, const JobEvent& event) {
  const bool stopping = state == JobState::stopping;
  switch (event.kind) {
    case Kind::start:
    case Kind::resume: return refuse("started", state, "wait for its end, or stop it");
    case Kind::remove: return refuse("deleted", state, "stop it first, and wait for its end");
    case Kind::save:
      if (stopping) return refuse("checkpointed", state, "it saves a checkpoint at its end");
      return JobTransition{state, JobEffect::save};
    case Kind::stop: return JobTransition{JobState::stopping, stopping ? JobEffect::kill : JobEffect::interrupt};
    case Kind::kill: return JobTransition{JobState::stopping, JobEffect::kill};
    case Kind::begin: return JobTransition{state, JobEffect::none};
    case Kind::ended: return JobTransition{end_state(state, event), JobEffect::none};
    case Kind::not_started: return JobTransition{JobState::failed, JobEffect::none};
    case Kind::never_began: return JobTransition{stopping ? JobState::stopped : JobState::queued, JobEffect::none};
    case Kind::vanished: return JobTransition{stopping ? JobState::stopped : JobState::lost, JobEffect::none};
  }
  return JobTransition{state, JobEffect::none};
}

Next of_ended(JobState state, const JobEvent& event) {
  switch (event.kind) {
    case Kind::resume:
      if (state == JobState::done) return refuse("resumed", state, "its run has reached its end");
      return JobTransition{JobState::queued, JobEffect::none};
    case Kind::start: return JobTransition{JobState::queued, JobEffect::none};
    case Kind::save: return refuse("checkpointed", state, "it does not run");
    case Kind::stop:
    case Kind::kill: return refuse("stopped", state, "it does not run");
    case Kind::remove: return JobTransition{state, JobEffect::forget};
    default: return JobTransition{state, JobEffect::none};
  }
}

}  // namespace

Next next_state(JobState state, const JobEvent& event) {
  if (state == JobState::queued) return of_waiting(event);
  return is_active(state) ? of_active(state, event) : of_ended(state, event);
}

std::string_view name(JobState state) noexcept {
  switch (state) {
    case JobState::queued: return "queued";
    case JobState::running: return "running";
    case JobState::stopping: return "stopping";
    case JobState::stopped: return "stopped";
    case JobState::done: return "done";
    case JobState::failed: return "failed";
    case JobState::lost: return "lost";
  }
  return "";
}

std::optional<JobState> job_state(std::string_view text) noexcept {
  const auto* const found = std::ranges::find_if(kJobStates, [&](JobState state) { return name(state) == text; });
  if (found == kJobStates.end()) return std::nullopt;
  return *found;
}

}  // namespace troupe::service
