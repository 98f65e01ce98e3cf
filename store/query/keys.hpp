/// What the keys of filters, columns and sorting mean in SQL. Thread rule: that of the database.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/query/filter.hpp"

namespace troupe::store {

/// A key as a store has it.
struct KnownKey {
  enum class Where : std::uint8_t { run, tags, column, option, result };
  Where where = Where::column;
  std::string name;     // whole
  bool number = false;  // of a column
  std::int64_t id = 0;  // of an option or result
};

/// The key that `key`, whole or its last part, stands for. Errc::usage: no run has it, or several keys end so. `what` begins the message.
[[nodiscard]] core::Result<KnownKey> resolve_key(Database& database, const std::string& key, const std::string& what);

/// The value of the key for the run `r`, as an SQL expression.
[[nodiscard]] std::string expression_of(const KnownKey& key);

/// A statement with the columns run and value: of all runs that have one. Those that it leaves out have none.
[[nodiscard]] std::string values_of(const KnownKey& key);

/// A statement whose column is the ids of the runs that fulfil a condition, and the values of its "?".
struct Selection {
  std::string statement;
  std::vector<Cell> parameters;
  bool scans = false;  // it looks at each run `r`: where few are left, " AND r.id = ?" asks for one
};
/// Errc::usage: an unknown or ambiguous key, or a value that it cannot have.
[[nodiscard]] core::Result<Selection> selection_of(Database& database, const Condition& condition);

}  // namespace troupe::store
