#include "store/run_notes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/read_text.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::store {
namespace {

using OrderedJson = nlohmann::ordered_json;

}  // namespace

void sort_tags(std::vector<std::string>& tags) {
  std::ranges::sort(tags);
  const auto [first, last] = std::ranges::unique(tags);
  tags.erase(first, last);
}

core::Result<RunNotes> read_notes(const std::string& directory) {
  const auto path = fmt::format("{}/{}", directory, kNotesFile);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool there = std::filesystem::exists(status);
  if (error && status.type() != std::filesystem::file_type::not_found)
    return tl::unexpected(core::from_errno(error.value(), "look for", path));  // else tags would be lost
  if (!there) return RunNotes{};
  if (!std::filesystem::is_regular_file(status))  // a pipe has no end
    return core::fail(core::Errc::corrupt, fmt::format("{} is no file: move it away", path));
  const auto text = core::read_text("notes of a run", path);
  if (!text) return tl::unexpected(core::Error{core::Errc::io, text.error().message});
  const auto json = OrderedJson::parse(*text, nullptr, false);
  const auto refused = [&] {
    return core::fail(core::Errc::corrupt, fmt::format("{} is not {{\"tags\": [texts], \"note\": text}}", path));
  };
  if (!json.is_object()) return refused();
  RunNotes notes;
  const auto tags = json.value("tags", OrderedJson::array());
  const auto note = json.value("note", OrderedJson(""));
  if (!tags.is_array() || !note.is_string()) return refused();
  for (const auto& tag : tags) {
    if (!tag.is_string()) return refused();
    notes.tags.push_back(tag.get<std::string>());
  }
  notes.note = note.get<std::string>();
  sort_tags(notes.tags);
  return notes;
}

core::Result<void> write_notes(const std::string& directory, const RunNotes& notes) {
  const auto text = OrderedJson{{"tags", notes.tags}, {"note", notes.note}}.dump(
                        -1, ' ', false, OrderedJson::error_handler_t::replace) +
                    "\n";
  const std::array parts{std::as_bytes(std::span(text))};
  return nn::replace_file(nn::system_files(), directory, std::string(kNotesFile), parts);
}

core::Result<void> check_tag(std::string_view tag) {
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c == ',' || c == 0x7f; };
  if (!tag.empty() && tag.size() <= kLongestTag && std::ranges::none_of(tag, is_bad)) return {};
  return core::fail(core::Errc::usage,
                    fmt::format("\"{}\" cannot be a tag: it is one word of at most {} bytes, without blanks and commas",
                                tag, kLongestTag));
}

}  // namespace troupe::store
