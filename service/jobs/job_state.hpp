/// The life of a job as a pure state machine: what its user and its process do to it. No clock, thread, process or file: JobRunner carries
/// out the effects. An attempt is one start of the job's process; a job that is started again or resumed has another one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.hpp"

namespace troupe::service {

enum class JobState : std::uint8_t {
  queued,    // waits for a slot
  running,   // its process has been ordered to start, and has not ended
  stopping,  // the same, and it has been asked to end
  stopped,   // ended on request, or submitted without being started
  done,      // ended with exit code 0
  failed,    // ended with another exit code or by a signal, or could not be started
  lost,      // its process vanished without an exit status: the host or its supervisor was killed
};
inline constexpr std::array kJobStates{JobState::queued, JobState::running, JobState::stopping, JobState::stopped,
                                       JobState::done,   JobState::failed,  JobState::lost};

struct JobEvent {
  enum class Kind : std::uint8_t {
    start,        // the user: begin a new run
    resume,       // the user: go on from the run's newest checkpoint
    stop,         // the user: save a checkpoint and end; the second time: end at once
    kill,         // the user: end at once
    save,         // the user: save a checkpoint and go on
    remove,       // the user: forget the job
    begin,        // a slot is free
    not_started,  // the operating system refused to start the process
    ended,        // the process ended with `code`, or by `signal`
    never_began,  // the service restarted between the order and the process's begin: the attempt ran nothing, and never will
    vanished,  // no process of the attempt is left, and no exit status
  };
  Kind kind = Kind::start;
  int code = 0;
  int signal = 0;  // 0: none
};
inline constexpr std::array kJobEvents{
    JobEvent::Kind::start,       JobEvent::Kind::resume,      JobEvent::Kind::stop,    JobEvent::Kind::kill,
    JobEvent::Kind::save,        JobEvent::Kind::remove,      JobEvent::Kind::begin,   JobEvent::Kind::ended,
    JobEvent::Kind::not_started, JobEvent::Kind::never_began, JobEvent::Kind::vanished};

/// What the runner must do after the new state has been stored.
enum class JobEffect : std::uint8_t { none, spawn, interrupt, kill, save, forget };

struct JobTransition {
  JobState state = JobState::queued;
  JobEffect effect = JobEffect::none;
  bool operator==(const JobTransition&) const = default;
};

/// A user's event that the state does not allow is Errc::usage, and the message says why. An event of the process that comes too late
/// changes nothing.
[[nodiscard]] core::Result<JobTransition> next_state(JobState state, const JobEvent& event);

/// Whether the job has a process, or may have one: it takes a slot.
[[nodiscard]] constexpr bool is_active(JobState state) noexcept {
  return state == JobState::running || state == JobState::stopping;
}

[[nodiscard]] std::string_view name(JobState state) noexcept;
[[nodiscard]] std::optional<JobState> job_state(std::string_view name) noexcept;

}  // namespace troupe::service
