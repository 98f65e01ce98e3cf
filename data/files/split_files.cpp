#include "data/files/split_files.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/files/found.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

tl::unexpected<core::Error> missing(std::string_view dataset, const fs::path& directory, bool train,
                                    std::string_view ending, std::string_view what) {
  std::vector<std::string> tried;
  for (const auto& word : split_words(train)) tried.push_back(fmt::format("{}{}", word, ending));
  return tl::unexpected(not_found(
      directory, fmt::format("data set '{}' is missing: no {} {} in {}{}: set data.path to the directory that has it",
                             dataset, what, fmt::join(tried, " or "), directory.string(), found_in(directory))));
}

/// Sorted by name.
std::vector<fs::path> files_named(const fs::path& directory, std::string_view word, std::string_view ending) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (name.starts_with(word) && name.ends_with(ending) && !entry->is_directory(error)) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

const std::vector<std::string>& split_words(bool train) {
  static const std::vector<std::string> training{"train"}, test{"test", "val", "validation"};
  return train ? training : test;
}

core::Result<std::vector<fs::path>> split_files(std::string_view dataset, const fs::path& directory, bool train,
                                                std::string_view ending) {
  for (const auto& word : split_words(train))
    if (auto files = files_named(directory, word, ending); !files.empty()) return files;
  return missing(dataset, directory, train, fmt::format("*{}", ending), "file");
}

core::Result<fs::path> split_file(std::string_view dataset, const fs::path& directory, bool train,
                                  std::string_view ending) {
  for (const auto& word : split_words(train)) {
    const auto files = files_named(directory, word, ending);
    const auto usual = directory / fmt::format("{}{}", word, ending);
    if (std::ranges::find(files, usual) != files.end()) return usual;
    if (files.size() == 1) return files.front();
    if (!files.empty())
      return core::fail(core::Errc::data,
                        fmt::format("data set '{}': {} has {} files {}*{}: name the one that counts {}", dataset,
                                    directory.string(), files.size(), word, ending, usual.filename().string()));
  }
  return missing(dataset, directory, train, std::string(ending), "file");
}

core::Result<fs::path> split_folder(std::string_view dataset, const fs::path& directory, bool train) {
  for (const auto& word : split_words(train)) {
    std::error_code ignored;
    if (fs::is_directory(directory / word, ignored)) return directory / word;
  }
  return missing(dataset, directory, train, "", "folder");
}

}  // namespace troupe::data
