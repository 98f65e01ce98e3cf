/// Text for a terminal: lines of a given width, and numbers that people read. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::core {

/// Where a width is not known: output that does not go to a terminal.
inline constexpr std::size_t kUsualColumns = 80;

/// Terminal columns: counts code points ("≥" is one).
[[nodiscard]] std::size_t text_width(std::string_view text);

/// `text` broken at its blanks into lines of at most `columns`; a longer word has a line of its own. The first line begins after `used`
/// columns, the others after `indent` blanks. No newline at the end.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent, std::size_t used);

/// One row of a list, with a newline: two blanks, `left`, and `right` wrapped from column `at`; below `left` where that is longer.
[[nodiscard]] std::string list_row(std::string_view left, std::string_view right, std::size_t at, std::size_t columns);

/// "1,000,000,000", "0.000001", "1e30": no exponents where digits are shorter to read, and no plus sign in one.
[[nodiscard]] std::string readable(double number);

/// Without blanks and tabs at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

}  // namespace troupe::core
