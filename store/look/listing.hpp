/// What the file system of a directory is like: whether it can have other names in it than before, without listing it, and how many threads should ask
/// it. Thread rule: pure but for the file system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::store {

/// When the names in an open directory last changed, in ns since 1970: its status change time, which nobody can set. 0: on this file system, or here,
/// that time tells nothing.
[[nodiscard]] std::int64_t time_of_listing(int directory);

/// How many threads ask about the files of an open directory at once: eight where a server answers late, or may. Where most answers come from memory, one
/// for each core, because more get in each other's way; but four at least, for those that come from a disk.
[[nodiscard]] std::size_t askers_of(int directory);

}  // namespace troupe::store
