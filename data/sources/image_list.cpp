#include "data/sources/image_list.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "data/sources/image_folder.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::size_t kMostLine = 64 << 10;  // bytes
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The fields of a line; none: a quote is not closed.
std::optional<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back().push_back(line[++i]);
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

std::optional<std::int32_t> number_of(const std::string& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// However large, so that one that is out of range is no class's name.
bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string without_spaces_around(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Whether a first line names columns: "path,label", or no picture that is there.
bool is_heading(const fs::path& folder, const std::string& path, const std::string& label) {
  if (path == "path" && label == "label") return true;
  std::error_code unknown;
  return !is_number(label) && path.find_first_of("./") == std::string::npos && !fs::exists(folder / path, unknown);
}

using Sample = std::function<Result<void>(std::int64_t line, const std::string& path, const std::string& label)>;

Result<void> each_sample(const fs::path& file, const Sample& sample) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) return tl::unexpected(core::from_errno(errno, "open", file.string()));
  // Not std::getline(): a file without line ends would be one line.
  std::vector<char> buffer(kMostLine + 2);
  std::string line;
  for (std::int64_t number = 1; in.getline(buffer.data(), static_cast<std::streamsize>(buffer.size())); ++number) {
    line = std::string(buffer.data(), static_cast<std::size_t>(in.gcount()) - (in.eof() ? 0 : 1));
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const auto fields = fields_of(line);
    const auto label = fields && fields->size() == 2 ? without_spaces_around((*fields)[1]) : std::string();
    if (label.empty() || (*fields)[0].empty() || (*fields)[0].find('\0') != std::string::npos)
      return fail(Errc::data, fmt::format("{}:{}: expected a line \"path,label\"", file.string(), number));
    if (number == 1 && is_heading(file.parent_path(), (*fields)[0], label)) continue;
    if (auto taken = sample(number, (*fields)[0], label); !taken) return taken;
  }
  if (in.bad()) return tl::unexpected(core::from_errno(errno, "read", file.string()));
  if (!in.eof()) return fail(Errc::data, fmt::format("{}: a line has more than {} bytes", file.string(), kMostLine));
  return {};
}

}  // namespace

Result<std::vector<std::string>> listed_classes(const fs::path& file) {
  std::set<std::string> names;
  bool numbers = true;
  const auto read = each_sample(file, [&](std::int64_t, const std::string&, const std::string& label) -> Result<void> {
    numbers = numbers && is_number(label);
    names.insert(label);
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  if (numbers) return std::vector<std::string>{};
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::shared_ptr<const ImageList>> ImageList::open(const ImageListOptions& options) {
  std::shared_ptr<ImageList> source(new ImageList);
  source->options_ = options;
  const auto& names = options.class_names;
  const auto number_for = [&](const std::string& label) -> std::optional<std::int32_t> {
    if (names.empty()) return number_of(label);
    const auto at = std::ranges::lower_bound(names, label);
    if (at == names.end() || *at != label) return std::nullopt;
    return static_cast<std::int32_t>(at - names.begin());
  };
  const auto read = each_sample(
      options.file, [&](std::int64_t line, const std::string& path, const std::string& label) -> Result<void> {
        const auto number = number_for(label);
        if (!number || *number < 0 || *number >= source->classes())
          return fail(Errc::data, names.empty() ? fmt::format("{}:{}: label {} is not in 0 ... {}: data.classes is {}",
                                                              options.file.string(), line, label, source->classes() - 1,
                                                              source->classes())
                                                : fmt::format("{}:{}: the training split has no class '{}'",
                                                              options.file.string(), line, label));
        source->paths_.push_back(source->text_.size());
        source->text_.append(path).push_back('\0');
        source->labels_.push_back(*number);
        return {};
      });
  if (!read) return tl::unexpected(read.error());
  if (source->labels_.empty()) return fail(Errc::data, fmt::format("{}: it lists no picture", options.file.string()));
  source->text_.shrink_to_fit();
  source->paths_.shrink_to_fit();
  source->labels_.shrink_to_fit();
  return source;
}

std::int32_t ImageList::classes() const noexcept {
  return options_.class_names.empty() ? options_.classes : static_cast<std::int32_t>(options_.class_names.size());
}

Result<std::int32_t> ImageList::label(std::int64_t index) const { return labels_.at(static_cast<std::size_t>(index)); }

std::string ImageList::where(std::int64_t index) const {
  return (options_.file.parent_path() / (text_.c_str() + paths_.at(static_cast<std::size_t>(index)))).string();
}

Result<std::int32_t> ImageList::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  return read_whole(where(index), options_.most_bytes, bytes).and_then([&] { return label(index); });
}

}  // namespace troupe::data
