/// Standard output with failures as values: a full disk behind a redirection is an Error. Standard error without failures.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/error.hpp"

namespace troupe::apps {

/// Writes `text` to standard output and flushes it. Errc::io or no_space.
[[nodiscard]] core::Result<void> print(std::string_view text);

/// Writes `text` to standard error. What cannot be written is dropped: a closed terminal or a full disk neither ends what is under way nor
/// changes its exit code.
void tell(std::string_view text) noexcept;

/// The width of the terminal that standard output is; 80 where it is none.
[[nodiscard]] std::size_t output_columns();

}  // namespace troupe::apps
