/// Texts of errors of libraries. Thread rule: pure functions.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace troupe::gpu {

/// "gpu/cuda/stream.cpp:41".
[[nodiscard]] std::string source_text(const std::source_location& where);

/// What a library says in several lines, as ": …" in one line of at most 300 characters; empty for nothing.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace troupe::gpu
