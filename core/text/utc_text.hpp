/// Moments as text. Thread rule: pure.
#pragma once

#include <ctime>
#include <string>

namespace troupe::core {

/// "2026-01-02T03:04:05Z".
[[nodiscard]] std::string utc_text(std::time_t time);

}  // namespace troupe::core
