/// Files of exports in directories. Thread rule: functions of the file system.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.hpp"

namespace troupe::store {

/// Errc::usage: there is something in `directory` already. It need not exist.
[[nodiscard]] core::Result<void> check_new_directory(const std::string& directory);

/// Writes a whole file, and makes the directories above it. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_export(const std::filesystem::path& path, const std::string& text);

}  // namespace troupe::store
