#include "data/files/hickle_split.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/files/found.hpp"
#include "data/files/split_files.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHickleEnding = ".hkl";

/// The entries of a folder whose names begin and end so: folders, or all others. Sorted by name.
std::vector<fs::path> entries_of(const fs::path& directory, std::string_view begin, std::string_view end,
                                 bool folders) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), last; !error && entry != last; entry.increment(error)) {
    const auto name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(begin) && name.ends_with(end) && entry->is_directory(ignored) == folders)
      found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

/// "0007_10" as "0007_" and "10"; no digits: not a part of a batch that was cut.
std::pair<std::string, std::string> batch_and_part(const fs::path& file) {
  constexpr std::size_t kLeastDigits = 2, kMostDigits = 3;
  const auto name = file.stem().string();
  const auto line = name.rfind('_');
  if (line == name.npos) return {name, ""};
  const auto digits = name.substr(line + 1);
  if (digits.size() < kLeastDigits || digits.size() > kMostDigits || digits.find_first_not_of("01") != digits.npos)
    return {name, ""};
  return {name.substr(0, line + 1), digits};
}

void sort_as_numbered(std::vector<fs::path>& files) {
  const bool parts = std::ranges::none_of(files, [](const auto& file) { return batch_and_part(file).second.empty(); });
  std::ranges::stable_sort(files, {}, [&](const fs::path& file) {
    const auto name = file.filename().string();
    const auto digits = std::min(name.find_first_not_of("0123456789"), name.size());  // 10000 comes after 9999
    if (!parts) return std::tuple(digits, name, std::string());
    auto [batch, part] = batch_and_part(file);
    std::ranges::reverse(part);
    return std::tuple(digits, std::move(batch), std::move(part));
  });
}

std::vector<fs::path> files_of(const fs::path& directory, const std::string& word) {
  for (const auto& folder : entries_of(directory, word, "", true))
    if (auto files = entries_of(folder, "", kHickleEnding, false); !files.empty()) return files;
  return entries_of(directory, word, kHickleEnding, false);
}

fs::path labels_of(const fs::path& directory, const std::string& word) {
  for (const auto& folder : {directory, directory / "labels"}) {
    std::error_code error;
    if (auto file = folder / (word + "_labels.npy"); fs::exists(file, error)) return file;
  }
  return {};
}

}  // namespace

core::Result<HickleSplit> hickle_split(std::string_view dataset, const fs::path& directory, bool train) {
  for (const auto& word : split_words(train)) {
    HickleSplit split{files_of(directory, word), {}};
    if (split.files.empty()) continue;
    sort_as_numbered(split.files);
    // "val" finds the folder "validation_hkl", too.
    for (const auto& other : split_words(train))
      if (split.labels.empty() && other.starts_with(word)) split.labels = labels_of(directory, other);
    return split;
  }
  std::vector<std::string> tried;
  for (const auto& word : split_words(train)) tried.push_back(fmt::format("{}*/*{}", word, kHickleEnding));
  return tl::unexpected(not_found(
      directory,
      fmt::format("data set '{}' is missing: no file {} in {}{}: set data.path to the directory that has them", dataset,
                  fmt::join(tried, " or "), directory.string(), found_in(directory))));
}

}  // namespace troupe::data
