/// Brings a store up to date with the directories of runs: reads what has changed since the last look, of a metrics.jsonl the lines that
/// have come. A run that is over costs one look at its directory's time.
#pragma once

#include <cstddef>
#include <string>

#include "core/error.hpp"
#include "store/database.hpp"

namespace troupe::store {

struct Refreshed {
  std::size_t looked_at = 0;  // directories
  std::size_t read = 0;       // of these, runs of which files were read
  std::size_t removed = 0;    // that are gone
};

/// `root` holds directories of runs, and of grids with runs in them. Commits from time to time, so that an interrupted look is not in vain.
/// Directories that are no runs, and files that cannot be read, are problems in the table `directories`, not errors. Errc::io: `root` cannot
/// be listed; and the database's errors.
[[nodiscard]] core::Result<Refreshed> refresh(Database& database, const std::string& root);

}  // namespace troupe::store
