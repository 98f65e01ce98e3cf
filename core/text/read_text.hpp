/// A whole file as text. Thread rule: pure but for reading the file, which may be a pipe.
#pragma once

#include <string>

#include "core/error.hpp"

namespace troupe::core {

/// `kind` names the expected content in messages. Errc::config names the file and the reason, such as "Is a directory";
/// Errc::io: permissions forbid it.
[[nodiscard]] Result<std::string> read_text(const std::string& kind, const std::string& path);

}  // namespace troupe::core
