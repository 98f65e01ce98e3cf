/// Which process: its number alone may be given to another one later. Thread-safe; reads /proc.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/file_descriptor.hpp"

namespace troupe::service {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start = 0;  // clock ticks from the machine's boot to the process's start: field 22 of /proc/<pid>/stat
  bool operator==(const ProcessIdentity&) const = default;
};

/// The identity of the process that has this number now; nothing: there is none, or it has ended and waits to be reaped.
[[nodiscard]] std::optional<ProcessIdentity> identity_of(pid_t pid);
[[nodiscard]] bool is_alive(const ProcessIdentity& process);

/// A descriptor that is readable when the process has ended, and that takes signals; none: there is no such process (errno: ESRCH), or the
/// system gives none.
[[nodiscard]] core::FileDescriptor open_process(pid_t pid);
/// Sends the signal to this process, never to one that has its number by now. False: it has ended, or may not be signalled.
bool send_signal(const ProcessIdentity& process, int signal);

/// Kills the processes of this process's session and its children, but not the leader itself. Looks again until none is left or the time is
/// over: some are forked meanwhile, and orphans become children of a leader that is a subreaper. A leader that has ended is given as it
/// was; nothing is killed if its number is another process's.
void kill_followers(const ProcessIdentity& leader, std::chrono::milliseconds patience);

}  // namespace troupe::service
