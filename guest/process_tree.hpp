/// Who has started whom, as /proc says: a view that may be old at once. Thread-safe.
#pragma once

#include <sys/types.h>

#include <vector>

namespace troupe::guest {

/// -1: the process has ended, or is not to be seen.
[[nodiscard]] pid_t parent_of(pid_t process) noexcept;
/// Whether `process` is `ancestor`, or is a child of it, or of a child of it, and so on.
[[nodiscard]] bool is_descendant(pid_t process, pid_t ancestor) noexcept;
/// All whose parent is `parent`. Reads all of /proc.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

}  // namespace troupe::guest
