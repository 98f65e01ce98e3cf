/// Errors of a data set whose files are not in its folder, and what they say. Thread rule: pure but for reading the folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::data {

/// " (there is no such directory)", " (it is empty)", or " (it has 12 entries: a.zip, b.zip, …; archives are not read: unpack them)". Of
/// train*.tar it says which data.name reads them.
[[nodiscard]] std::string found_in(const std::filesystem::path& directory);

/// "fetch it with `troupe data fetch mnist`, or set data.path to the directory that has its files": of a data set that can be fetched.
[[nodiscard]] std::string how_to_fetch(std::string_view dataset, const std::filesystem::path& directory);

/// Errc::data with `message`; Errc::io if this user may not look into the folder, where the files may well be.
[[nodiscard]] core::Error not_found(const std::filesystem::path& directory, std::string message);

}  // namespace troupe::data
