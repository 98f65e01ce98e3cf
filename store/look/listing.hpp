/// Whether a directory can have other names in it than before, without listing it. Thread rule: pure but for the file system.
#pragma once

#include <cstdint>

namespace troupe::store {

/// When the names in an open directory last changed, in ns since 1970: its status change time, which nobody can set. 0: on this file system, or here,
/// that time tells nothing.
[[nodiscard]] std::int64_t time_of_listing(int directory);

}  // namespace troupe::store
