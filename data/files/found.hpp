/// What is in the folder of a data set whose files are missing, for messages. Thread rule: pure but for reading the folder.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::data {

/// " (there is no such directory)", " (it is empty)", or " (it has 12 entries: a.tar, b.tar, …; archives are not read: unpack them)".
[[nodiscard]] std::string found_in(const std::filesystem::path& directory);

}  // namespace troupe::data
