/// Runs of a store that fulfil conditions, sorted, with the requested columns. Thread rule: that of the database.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/query/filter.hpp"

namespace troupe::store {

/// Keys are `run` (the directory), `tags`, a RunColumn, a key of the configuration, or a result under its dotted name. The last part of a
/// key is enough where only one key ends so: `lr`.
struct ListQuery {
  std::vector<Condition> conditions = {};
  std::vector<std::string> columns = {};
  std::string sort = "started";
  bool ascending = false;   // runs without a value come last either way
  std::int64_t limit = 0;   // 0: all
  std::int64_t offset = 0;  // of the first run; only with a limit
};

struct Listing {
  std::vector<std::string> columns;  // whole keys
  std::vector<std::int64_t> runs;    // ids
  std::vector<std::vector<Cell>> rows;
  std::int64_t total = 0;  // runs that fulfil the conditions
};

/// Errc::usage: an unknown or ambiguous key, or a value that its key cannot have.
[[nodiscard]] core::Result<Listing> list(Database& database, const ListQuery& query);

/// The directories beside the runs that are not runs: grids, sweeps and others; by path.
[[nodiscard]] core::Result<std::vector<std::string>> folders_of(Database& database);

}  // namespace troupe::store
