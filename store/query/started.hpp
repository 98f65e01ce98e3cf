/// When a run began, for exports. Pure, but for the time zone of this process.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::store {

/// Of "2026-01-02 03:04:05" in local time; 0: not known.
[[nodiscard]] std::int64_t seconds_since_1970(const std::string& started);

}  // namespace troupe::store
