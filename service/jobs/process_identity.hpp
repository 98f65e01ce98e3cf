/// Which process: its number alone may be given to another one later. Thread-safe; reads /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::service {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start = 0;  // clock ticks from the machine's boot to the process's start: field 22 of /proc/<pid>/stat
  bool operator==(const ProcessIdentity&) const = default;
};

/// The identity of the process that has this number now; nothing: there is none, or it has ended and waits to be reaped.
[[nodiscard]] std::optional<ProcessIdentity> identity_of(pid_t pid);
[[nodiscard]] bool is_alive(const ProcessIdentity& process);

/// The processes of a session but its leader.
[[nodiscard]] std::vector<pid_t> members_of_session(pid_t session);

}  // namespace troupe::service
