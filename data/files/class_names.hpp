/// The names of classes in a file beside a data set's own. Thread rule: pure but for reading the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

/// The lines of `directory`/classes.txt, line k the name of class k; empty: there is no such file. Errc::data: it has not exactly `classes`
/// lines, an empty one, or is larger than 64 MiB; io: it cannot be read.
[[nodiscard]] core::Result<std::vector<std::string>> read_class_names(const std::filesystem::path& directory,
                                                                      std::int32_t classes);

}  // namespace troupe::data
