/// The process between the service and a job's program. It survives the service, and writes down how the program ends: job_folder.hpp says
/// how the two agree. It leads a session, and adopts what leaves that: every process of the job is in the session or becomes its child. One
/// thread, in a process of its own: `troupe supervise`.
///
/// Signals, which only the service sends:
///     SIGINT     the first one is passed on: the program saves a checkpoint and ends. Later ones are not, as a second one would make the
///                program end without; a service that has restarted may therefore send it again
///     SIGTERM    is passed on
///     SIGUSR1    is passed on: the program saves a checkpoint and goes on. It is ignored by a program that has not yet set its handler
///     SIGUSR2    kills all processes of the job
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "service/jobs/job_folder.hpp"

namespace troupe::service {

struct SuperviseOptions {
  std::string folder = {};
  std::int64_t attempt = 0;
  std::vector<std::string> command = {};  // the program, looked up on PATH, and its arguments
  CrashPoint crash = nullptr;
};

/// How long a supervisor waits for what is left of the attempt before.
inline constexpr std::chrono::seconds kLockPatience{60};
/// How long processes that the program has started may go on after its end: those of a grid save their checkpoints.
inline constexpr std::chrono::seconds kLeftoverPatience{60};
/// How long the program's end is written again and again while the disk is full.
inline constexpr std::chrono::hours kFullDiskPatience{1};

/// Runs the program and returns after its end, or at once when the attempt must not begin any more. Errc::io, no_space; timeout: a process
/// of an earlier attempt still runs. REQUIRES a process that is the leader of its session and has one thread.
[[nodiscard]] core::Result<void> supervise(const SuperviseOptions& options);

/// The signals above and SIGCHLD. The service blocks them in the process that becomes the supervisor, so that none is lost.
[[nodiscard]] sigset_t supervisor_signals();

}  // namespace troupe::service
