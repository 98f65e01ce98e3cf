#include "data/files/found.hpp"

#include <algorithm>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/plural.hpp"

namespace troupe::data {
namespace {

bool is_archive(const std::string& name) {
  return std::ranges::any_of(std::initializer_list<const char*>{".tar", ".tar.gz", ".tgz", ".zip", ".parquet"},
                             [&](const char* end) { return name.ends_with(end); });
}

}  // namespace

std::string found_in(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) return " (there is no such directory)";
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) return fmt::format(" ({})", error.message());
  if (names.empty()) return " (it is empty)";
  std::ranges::sort(names);
  constexpr std::size_t kMostNames = 3;
  const auto shown = std::min(names.size(), kMostNames);
  return fmt::format(" (it has {}: {}{}{})", core::counted(names.size(), "entry", "entries"),
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", …" : "",
                     std::ranges::any_of(names, is_archive) ? "; archives are not read: unpack them" : "");
}

}  // namespace troupe::data
