#include "guest/lines.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::guest {
namespace {

/// Bytes of the character that begins `text`; 0: it is none of UTF-8, or a control character.
std::size_t bytes_of_character(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<std::uint8_t>(text[k]); };
  const auto first = byte(0);
  if (first < 0x80) return (first >= 0x20 && first != 0x7f) || first == '\t' ? 1 : 0;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t k = 1; k < size; ++k)
    if ((byte(k) & 0xc0) != 0x80) return 0;
  const auto second = byte(1);
  const bool control = first == 0xc2 && second < 0xa0;  // U+0080 to U+009F
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool none =
      (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);  // surrogates, above U+10FFFF
  return control || too_long || none ? 0 : size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    const auto size = bytes_of_character(text);
    if (size == 0)
      made += '?';
    else
      made += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return made;
}

std::string last_lines_of(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    if (!line.empty()) lines.push_back(printable(line));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  return fmt::format("{}", fmt::join(lines, " | "));
}

}  // namespace troupe::guest
