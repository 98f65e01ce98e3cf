#include "data/files/found.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
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

bool is_shard(const std::string& name) { return name.starts_with("train") && name.ends_with(".tar"); }

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
  const auto advice = std::ranges::any_of(names, is_shard)     ? "; data.name = \"shards\" reads train*.tar"
                      : std::ranges::any_of(names, is_archive) ? "; archives are not read: unpack them"
                                                               : "";
  const auto shown = std::min(names.size(), kMostNames);
  return fmt::format(" (it has {}: {}{}{})", core::counted(names.size(), "entry", "entries"),
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", …" : "", advice);
}

std::string how_to_fetch(std::string_view dataset, const std::filesystem::path& directory) {
  const bool usual = directory == std::filesystem::path("data") / dataset;  // where `troupe data fetch` puts it
  return fmt::format("fetch it with `troupe data fetch {}{}`, or set data.path to the directory that has its files",
                     dataset, usual ? std::string() : " --to " + directory.string());
}

core::Error not_found(const std::filesystem::path& directory, std::string message) {
  std::error_code listing, looking;
  const std::filesystem::directory_iterator list(directory, listing);
  // A folder that may be listed need not be one whose files may be looked at.
  (void)std::filesystem::status(directory / ".", looking);
  for (const auto& error : {listing, looking})
    if (error == std::errc::permission_denied) return core::from_errno(error.value(), "read", directory.string());
  return {core::Errc::data, std::move(message)};
}

}  // namespace troupe::data
