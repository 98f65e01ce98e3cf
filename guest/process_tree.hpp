/// Parents and children of processes, from /proc. The answer may be out of date when it is returned. Thread-safe.
#pragma once

#include <sys/types.h>

#include <vector>

namespace troupe::guest {

/// -1: the process has ended, or is not visible.
[[nodiscard]] pid_t parent_of(pid_t process) noexcept;
/// Whether `process` is `ancestor` or one of its descendants.
[[nodiscard]] bool is_descendant(pid_t process, pid_t ancestor) noexcept;
/// All whose parent is `parent`. Reads all of /proc.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

}  // namespace troupe::guest
