#include "store/query/list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/query/keys.hpp"

namespace troupe::store {

core::Result<Listing> list(Database& database, const ListQuery& query) {
  Listing listing;
  std::vector<Cell> parameters;
  const auto where = where_of(database, query.conditions, parameters);
  if (!where) return tl::unexpected(where.error());
  const auto sort = resolve_key(database, query.sort, "--sort: ");
  if (!sort) return tl::unexpected(sort.error());
  std::vector<std::string> expressions;
  for (const auto& column : query.columns) {
    const auto key = resolve_key(database, column, "--columns: ");
    if (!key) return tl::unexpected(key.error());
    listing.columns.push_back(key->name);
    expressions.push_back(expression_of(*key));
  }

  // First the runs, then their values: SQLite would look up the values of all runs before it sorts.
  const auto from = fmt::format("FROM runs r WHERE {}", *where);
  Statement runs(database,
                 fmt::format("SELECT r.id {} ORDER BY {} {} NULLS LAST, r.id {} LIMIT {} OFFSET {}", from,
                             expression_of(*sort), query.ascending ? "ASC" : "DESC", query.ascending ? "ASC" : "DESC",
                             query.limit > 0 ? query.limit : -1, query.limit > 0 ? query.offset : 0));
  for (runs.with_list(parameters); runs.next();) listing.runs.push_back(runs.integer(0));
  listing.total = static_cast<std::int64_t>(listing.runs.size());
  if (query.limit > 0 && (listing.total == query.limit || query.offset > 0)) {
    Statement count(database, "SELECT count(*) " + from);
    if (count.with_list(parameters).next()) listing.total = count.integer(0);
  }

  expressions.emplace_back("1");  // a listing may have no columns
  Statement values(database, fmt::format("SELECT {} FROM runs r WHERE r.id = ?", fmt::join(expressions, ", ")));
  for (const auto run : listing.runs) {
    auto& row = listing.rows.emplace_back();
    row.resize(listing.columns.size());
    if (!values.with(run).next()) continue;  // removed meanwhile
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = values.cell(static_cast<int>(i));
  }
  if (auto checked = database.check(); !checked) return tl::unexpected(checked.error());
  return listing;
}

}  // namespace troupe::store
