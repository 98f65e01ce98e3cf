/// Text of unknown origin on a terminal: names and messages that files and other programs give. Pure functions; UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::core {

/// `text` without what would move a cursor, change colours or reorder a line: control characters become blanks, bytes that are no UTF-8
/// become U+FFFD, and characters that change the direction of writing are left out.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns of a terminal: wide characters take two, combining ones none (the C library's table for Unicode). REQUIRES printable text.
[[nodiscard]] std::size_t display_columns(std::string_view text);

/// The beginning of `text` that fills at most `columns`; a wide character that would be cut in half is left out. REQUIRES printable text.
[[nodiscard]] std::string_view display_cut(std::string_view text, std::size_t columns);

}  // namespace troupe::core
