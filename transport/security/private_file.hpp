/// Files that contain keys and certificates: replaced as a whole or not at all, and never readable with wider permissions. Thread rule:
/// none; with two writers of one path the last one wins.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::security {

inline constexpr mode_t kForOwner = 0600;  // keys
inline constexpr mode_t kForAll = 0644;    // certificates

/// Whose the new file is. `kept`: where root replaces a file, that file's owner and group; for files that root changes for a service.
enum class Owner : std::uint8_t { caller, kept };

/// Writes a temporary file beside `path` with `mode`, syncs it, renames it to `path` and syncs the directory. Errc::io or no_space; the old
/// file is then unchanged, and the temporary file is removed.
[[nodiscard]] core::Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode,
                                              Owner owner = Owner::caller);

/// Errc::io when `path` cannot be read, is not a regular file, or is larger than 1 MiB.
[[nodiscard]] core::Result<std::string> read_file(const std::string& path);

}  // namespace troupe::security
