/// Tags and a note that a user gives a run: `notes.json` in its directory (docs/formats/run-directory.md), so that a store can be rebuilt
/// without losing them. Thread rule: pure functions, except for the file. The caller makes sure that no two processes change one file at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::store {

struct RunNotes {
  std::vector<std::string> tags;  // sorted, each once
  std::string note;
  bool operator==(const RunNotes&) const = default;
};

inline constexpr std::string_view kNotesFile = "notes.json";
inline constexpr std::size_t kLongestTag = 100, kLongestNote = 10'000;  // bytes

/// Empty where there is no file. Errc::corrupt for a file that does not hold them; io.
[[nodiscard]] core::Result<RunNotes> read_notes(const std::string& directory);
/// Replaces the file as a whole. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_notes(const std::string& directory, const RunNotes& notes);

/// Sorts tags, and keeps each once.
void sort_tags(std::vector<std::string>& tags);

/// Errc::usage: empty, too long, or with blanks, commas or control characters, which lists of tags need.
[[nodiscard]] core::Result<void> check_tag(std::string_view tag);

}  // namespace troupe::store
