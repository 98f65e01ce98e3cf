/// A whole file as text.
#pragma once

#include <string>

#include "core/error.hpp"

namespace troupe::sim {

/// `kind`: what it is to be, for the message. Errc::config names the file and why it cannot be read: "Is a directory".
[[nodiscard]] core::Result<std::string> read_text(const std::string& kind, const std::string& path);

}  // namespace troupe::sim
