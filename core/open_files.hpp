/// The limit on the descriptors that a process may have open (`ulimit -n`). Every connection between workers is at least one. Most systems
/// begin processes with a soft limit of 1,024, for the sake of select(2), and let them raise it to a hard one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace troupe::core {

/// Behind the system's text for EMFILE.
inline constexpr std::string_view kOpenFilesAdvice = " (raise this process's limit: `ulimit -n`)";

/// Raises the soft limit to the hard one, but not above 2^20: some libraries close or scan every number below the limit. Call it before
/// other threads begin.
void raise_open_files_limit() noexcept;
/// Gives a child the soft limit that this process began with: other people's programs may use select(2), which fails above 1,024. 0: this
/// process, between fork and exec. No effect without raise_open_files_limit().
void restore_open_files_limit(pid_t child = 0) noexcept;
/// The soft limit of this process.
[[nodiscard]] std::uint64_t open_files_limit() noexcept;

}  // namespace troupe::core
