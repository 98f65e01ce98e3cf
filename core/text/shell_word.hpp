/// A word of a command that the user may paste into a shell. Pure function.
#pragma once

#include <string>
#include <string_view>

namespace troupe::core {

/// The word as a POSIX shell reads it: as it is, or in single quotes where it has characters that mean something to the shell.
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace troupe::core
