/// A whole file as text.
#pragma once

#include <string>

#include "core/error.hpp"

namespace troupe::sim {

/// `kind` names the expected content in messages. Errc::config names the file and the reason, such as "Is a directory".
[[nodiscard]] core::Result<std::string> read_text(const std::string& kind, const std::string& path);

}  // namespace troupe::sim
