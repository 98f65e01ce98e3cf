/// The files of a split, found by their names. Thread rule: pure but for reading the folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

/// The first word of the names of a split's files and folders, in the order in which they are tried: {"train"}, or {"test", "val",
/// "validation"}.
[[nodiscard]] const std::vector<std::string>& split_words(bool train);

/// The files "WORD*ENDING" in `directory`, for the first word of split_words() that has any, sorted by name. Errc::data: none (and what the
/// directory has instead), naming `dataset`.
[[nodiscard]] core::Result<std::vector<std::filesystem::path>> split_files(std::string_view dataset,
                                                                           const std::filesystem::path& directory,
                                                                           bool train, std::string_view ending);

/// The one file WORD+ENDING in `directory`, or where there is none the only "WORD*ENDING". Errc::data as above, or that there are several.
[[nodiscard]] core::Result<std::filesystem::path> split_file(std::string_view dataset,
                                                             const std::filesystem::path& directory, bool train,
                                                             std::string_view ending);

/// The folder of a split: DIRECTORY/WORD. Errc::data as above.
[[nodiscard]] core::Result<std::filesystem::path> split_folder(std::string_view dataset,
                                                               const std::filesystem::path& directory, bool train);

}  // namespace troupe::data
