/// Brings a store up to date with the directories of runs: reads what has changed since the last refresh; of a metrics.jsonl, the appended
/// lines. A run that has ended costs one stat() of its directory, and `root` is listed only when a name in it may have come or gone.
/// Thread rule: that of the database.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>

#include "core/error.hpp"
#include "store/database.hpp"

namespace troupe::store {

struct Refreshed {
  std::size_t looked_at = 0;  // directories
  std::size_t read = 0;       // runs of which files were read
  std::size_t removed = 0;    // known directories that no longer exist
};

/// `root` holds directories of runs, and of grids with runs in them. Commits from time to time, so that an interrupted refresh keeps what it
/// has read. Directories that are not runs, and files that cannot be read, are problems in the table `directories`, not errors. Errc::io:
/// `root` cannot be listed; Errc::interrupted: `stop` was requested, which is noticed between some hundred directories; and the database's errors.
[[nodiscard]] core::Result<Refreshed> refresh(Database& database, const std::string& root, std::stop_token stop = {});

}  // namespace troupe::store
