/// Text of a program of the user's, made fit for a log line and a terminal. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace troupe::guest {

/// `text` with a '?' for each control character but the tab, and for each byte that is not UTF-8.
[[nodiscard]] std::string printable(std::string_view text);
/// The last `most` lines of `text` that are not empty, printable, with " | " between them.
[[nodiscard]] std::string last_lines_of(std::string_view text, std::size_t most);

}  // namespace troupe::guest
