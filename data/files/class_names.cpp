#include "data/files/class_names.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "core/text/plural.hpp"
#include "data/files/open_file.hpp"

namespace troupe::data {
namespace {

constexpr std::uint64_t kMostNameBytes = std::uint64_t{64} << 20;  // of a million names

}  // namespace

core::Result<std::vector<std::string>> read_class_names(const std::filesystem::path& directory, std::int32_t classes) {
  const auto path = directory / "classes.txt";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::vector<std::string>{};
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::data, fmt::format("{}: {}", path.string(), why));
  };
  const auto file = OpenFile::open(path);
  if (!file) return tl::unexpected(file.error());
  if (file->size() > kMostNameBytes) return refuse(fmt::format("{} bytes are too many for names", file->size()));
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  if (const auto read = file->read(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}); !read)
    return tl::unexpected(read.error());
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty())
      return refuse(fmt::format("line {} is empty: it is the name of class {}", names.size() + 1, names.size()));
    names.push_back(std::move(line));
  }
  if (std::ranges::ssize(names) != classes)
    return refuse(fmt::format("it names {}, and the data set has {}: set data.classes, or mend the file",
                              core::counted(names.size(), "class", "classes"), classes));
  return names;
}

}  // namespace troupe::data
