/// What commands print. Failures of standard output are values: a full disk behind a redirection is an Error. Standard error has none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "experiment/reports.hpp"

namespace troupe::apps {

/// Writes `text` to standard output and flushes it. Errc::io or no_space.
[[nodiscard]] core::Result<void> print(std::string_view text);

/// Writes `text` to standard error. What cannot be written is dropped: a closed terminal or a full disk neither ends what is under way nor
/// changes its exit code.
void tell(std::string_view text) noexcept;

/// One line, with its end: "warning: …" for a warning.
[[nodiscard]] std::string note_text(const experiment::Note& note);

/// Writes it to standard error.
void print_note(const experiment::Note& note);

/// The width of the terminal that standard output is; none: it is no terminal.
[[nodiscard]] std::optional<std::size_t> terminal_columns();

/// The same for text that is broken into lines: 80 where standard output is no terminal, and at least 40.
[[nodiscard]] std::size_t output_columns();

}  // namespace troupe::apps
