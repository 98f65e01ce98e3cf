/// classes.txt: the names of a data set's classes, a line each, in the order of their numbers. It stands beside files that have only numbers
/// (shards, batch files, records). Thread rule: pure but for the file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

/// DIRECTORY/classes.txt.
[[nodiscard]] std::filesystem::path class_list_file(const std::filesystem::path& directory);

/// The names in class_list_file(); empty: there is no such file. Errc::data names file and line: an empty name, one that comes twice,
/// more than a million; no name at all.
[[nodiscard]] core::Result<std::vector<std::string>> class_list(const std::filesystem::path& directory);

/// Errc::data: a name that class_list() would not read back, as one of two lines.
[[nodiscard]] core::Result<void> check_class_names(const std::vector<std::string>& names);

/// Writes it, as a whole. Errc::io, no_space; data: check_class_names().
[[nodiscard]] core::Result<void> write_class_list(const std::filesystem::path& directory,
                                                  const std::vector<std::string>& names);

}  // namespace troupe::data
