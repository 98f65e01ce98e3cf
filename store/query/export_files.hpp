/// Files of exports in directories, and their texts. Thread rule: functions of the file system, else pure.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/error.hpp"

namespace troupe::store {

/// Errc::usage: there is something in `directory` already. It need not exist.
[[nodiscard]] core::Result<void> check_new_directory(const std::string& directory);

/// Writes a whole file, and makes the directories above it. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_export(const std::filesystem::path& path, const std::string& text);

/// `text` as UTF-8: invalid bytes become U+FFFD. Readers refuse a whole run for one such byte.
[[nodiscard]] std::string utf8_of(const std::string& text);

/// At most the first `bytes` bytes of UTF-8, whole characters.
[[nodiscard]] std::string first_bytes(std::string text, std::size_t bytes);

}  // namespace troupe::store
