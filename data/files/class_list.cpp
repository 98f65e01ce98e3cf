#include "data/files/class_list.hpp"

#include <cerrno>
#include <fstream>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "data/files/whole_file.hpp"

namespace troupe::data {
namespace {

constexpr const char* kName = "classes.txt";
constexpr std::size_t kMostNames = 1'000'000;
constexpr std::size_t kMostBytes = 1000;  // of a name

}  // namespace

std::filesystem::path class_list_file(const std::filesystem::path& directory) { return directory / kName; }

core::Result<std::vector<std::string>> class_list(const std::filesystem::path& directory) {
  const auto path = class_list_file(directory);
  std::vector<std::string> names;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return names;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return tl::unexpected(core::from_errno(errno, "open", path.string()));
  const auto bad = [&](std::string_view why) {
    return core::fail(core::Errc::data, fmt::format("{}: line {}: {}", path.string(), names.size() + 1, why));
  };
  std::set<std::string> seen;
  for (std::string line; std::getline(in, line);) {
    if (names.empty() && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) return bad("no name of a class");
    if (line.size() > kMostBytes) return bad(fmt::format("a name of {} bytes", line.size()));
    if (names.size() == kMostNames) return bad("more than a million classes");
    if (!seen.insert(line).second) return bad(fmt::format("the class '{}' comes twice", line));
    names.push_back(std::move(line));
  }
  if (names.empty()) return bad("no name of a class");
  return names;
}

core::Result<void> check_class_names(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const auto& name : names)
    if (name.empty() || name.size() > kMostBytes || name.find('\n') != std::string::npos || name.ends_with('\r') ||
        !seen.insert(name).second)
      return core::fail(core::Errc::data,
                        fmt::format("the name of a class '{}' cannot stand in {}: a name is one line of 1 to {} bytes, "
                                    "and comes once",
                                    name.substr(0, kMostBytes), kName, kMostBytes));
  return {};
}

core::Result<void> write_class_list(const std::filesystem::path& directory, const std::vector<std::string>& names) {
  if (auto checked = check_class_names(names); !checked) return checked;
  std::string text;
  for (const auto& name : names) text += name + '\n';
  return write_whole(class_list_file(directory), std::as_bytes(std::span(text)));
}

}  // namespace troupe::data
