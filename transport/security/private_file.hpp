/// Files that hold keys and certificates: replaced as a whole or not at all, never seen with wider permissions.
/// Thread rule: none of its own; two writers of one path race for who comes last.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::security {

inline constexpr mode_t kForOwner = 0600;  // keys
inline constexpr mode_t kForAll = 0644;    // certificates

/// Writes a temporary file beside `path` with `mode`, syncs it, renames it over `path` and syncs the directory.
/// Errc::io or no_space, with the old file as it was and no temporary left.
[[nodiscard]] core::Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode);

/// Errc::io when it cannot be read, is no regular file, or has more than 1 MiB.
[[nodiscard]] core::Result<std::string> read_file(const std::string& path);

}  // namespace troupe::security
