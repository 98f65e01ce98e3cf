/// Which runs fulfil conditions, and the first of them in an order. Every condition is answered alone, as a set, from the index that has its values: SQLite
/// would look up the values of each run, run by run. Thread rule: that of the database; a RunSet is a value.
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/query/filter.hpp"
#include "store/query/keys.hpp"

namespace troupe::store {

/// Ids of runs, a bit each.
class RunSet {
 public:
  /// REQUIRES an id of at least 0.
  void insert(std::int64_t id);
  [[nodiscard]] bool contains(std::int64_t id) const noexcept;
  /// Keeps what is also in `other`.
  void intersect(const RunSet& other);
  [[nodiscard]] std::int64_t count() const noexcept;
  /// Ascending.
  [[nodiscard]] std::vector<std::int64_t> ids() const;

 private:
  std::vector<std::uint64_t> words_;
};

/// All runs without conditions. Errc::usage: an unknown or ambiguous key, or a value that its key cannot have.
[[nodiscard]] core::Result<RunSet> runs_that(Database& database, const std::vector<Condition>& conditions);

struct Order {
  KnownKey key;
  bool ascending =
      false;  // runs without a value come last either way; runs with the same value are in the same order by their ids
  std::int64_t limit = 0;   // 0: all
  std::int64_t offset = 0;  // of the first; only with a limit
};

/// Ids of `set` in this order.
[[nodiscard]] std::vector<std::int64_t> ordered(Database& database, const RunSet& set, const Order& order);

}  // namespace troupe::store
