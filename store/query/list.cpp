#include "store/query/list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/query/keys.hpp"
#include "store/query/run_set.hpp"

namespace troupe::store {
namespace {

/// SQLite sorts all runs by what is in their rows sooner than that is read into a set.
bool is_in_row(const KnownKey& key) { return key.where == KnownKey::Where::column; }

/// Of all runs.
void list_all(Database& database, const Order& order, Listing& listing) {
  const auto* direction = order.ascending ? "ASC" : "DESC";
  Statement runs(database, fmt::format("SELECT r.id FROM runs r ORDER BY {} {} NULLS LAST, r.id {} LIMIT {} OFFSET {}",
                                       expression_of(order.key), direction, direction,
                                       order.limit > 0 ? order.limit : -1, order.limit > 0 ? order.offset : 0));
  while (runs.next()) listing.runs.push_back(runs.integer(0));
  listing.total = database.number("SELECT count(*) FROM runs");
}

}  // namespace

core::Result<Listing> list(Database& database, const ListQuery& query) {
  Listing listing;
  const auto sort = resolve_key(database, query.sort, "--sort: ");
  if (!sort) return tl::unexpected(sort.error());
  std::vector<std::string> expressions;
  for (const auto& column : query.columns) {
    const auto key = resolve_key(database, column, "--columns: ");
    if (!key) return tl::unexpected(key.error());
    listing.columns.push_back(key->name);
    expressions.push_back(expression_of(*key));
  }

  // First the runs, then their values.
  const Order order{*sort, query.ascending, query.limit, query.offset};
  if (query.conditions.empty() && is_in_row(*sort)) {
    list_all(database, order, listing);
  } else {
    const auto set = runs_that(database, query.conditions);
    if (!set) return tl::unexpected(set.error());
    listing.runs = ordered(database, *set, order);
    listing.total = set->count();
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

core::Result<std::vector<std::string>> folders_of(Database& database) {
  std::vector<std::string> folders;
  for (Statement all(database, "SELECT path FROM directories WHERE kind <> 'run' ORDER BY path"); all.next();)
    folders.push_back(all.text(0));
  return database.check().map([&] { return folders; });
}

}  // namespace troupe::store
