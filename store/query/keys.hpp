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

/// The conditions as one SQL expression over the run `r`; the values of its "?" are added to `parameters`.
[[nodiscard]] core::Result<std::string> where_of(Database& database, const std::vector<Condition>& conditions,
                                                 std::vector<Cell>& parameters);

}  // namespace troupe::store
