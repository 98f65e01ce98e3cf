#include "store/query/details.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace troupe::store {
namespace {

Values values_by_key(Database& database, const char* statement, std::int64_t id) {
  Values values;
  Statement all(database, statement);
  for (all.with(id); all.next();) values.emplace_back(all.text(0), all.cell(1));
  return values;
}

double real(const Statement& row, int column) {
  const auto cell = row.cell(column);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&cell);
  return number == nullptr ? 0 : *number;
}

}  // namespace

core::Result<std::optional<std::int64_t>> run_at(Database& database, const std::string& path) {
  Statement run(database, "SELECT r.id FROM directories d JOIN runs r ON r.id = d.id WHERE d.path = ?");
  std::optional<std::int64_t> id;
  if (run.with(path).next()) id = run.integer(0);
  return database.check().map([&] { return id; });
}

core::Result<RunDetails> details_of(Database& database, std::int64_t run) {
  RunDetails details;
  details.id = run;
  Statement row(
      database,
      "SELECT d.path, r.name, r.started, r.status, r.grid, r.error, d.problem, r.note, r.config, r.seed, s.json "
      "FROM runs r JOIN directories d ON d.id = r.id LEFT JOIN summaries s ON s.run = r.id WHERE r.id = ?");
  const bool found = row.with(run).next();
  if (auto checked = database.check(); !checked) return tl::unexpected(checked.error());
  if (!found) return core::fail(core::Errc::config, "the run is gone: another process has removed it");
  details.path = row.text(0);
  details.name = row.text(1);
  details.started = row.text(2);
  details.status = row.text(3);
  details.grid = row.text(4);
  details.error = row.text(5);
  details.problem = row.text(6);
  details.notes.note = row.text(7);
  details.options = values_by_key(
      database, "SELECT k.name, o.value FROM options o JOIN keys k ON k.id = o.key WHERE o.config = ?", row.integer(8));
  details.options.emplace_back("run.name", details.name);
  if (const auto seed = row.cell(9); seed.index() != 0) details.options.emplace_back("run.seed", seed);
  std::ranges::sort(details.options, {}, &std::pair<std::string, Cell>::first);
  details.summary = row.text(10);
  details.results = values_by_key(
      database, "SELECT k.name, v.value FROM results v JOIN keys k ON k.id = v.key WHERE v.run = ? ORDER BY k.name",
      run);
  for (const auto& [tag, nothing] : values_by_key(database, "SELECT tag, 1 FROM tags WHERE run = ? ORDER BY tag", run))
    details.notes.tags.push_back(tag);
  for (const auto& [kind, source] :
       values_by_key(database, "SELECT kind, source FROM lineage WHERE run = ? ORDER BY kind, source", run))
    details.lineage.emplace_back(kind, text_of(source));
  if (auto checked = database.check(); !checked) return tl::unexpected(checked.error());
  return details;
}

core::Result<std::vector<Point>> curves_of(Database& database, std::int64_t run) {
  std::vector<Point> points;
  Statement all(database,
                "SELECT k.name, p.epoch, p.seconds, p.value FROM points p JOIN series k ON k.id = p.series "
                "WHERE p.run = ? ORDER BY k.name, p.epoch");
  for (all.with(run); all.next();) points.push_back({all.text(0), real(all, 1), real(all, 2), real(all, 3)});
  return database.check().map([&] { return points; });
}

std::vector<std::string> differing_keys(const std::vector<RunDetails>& runs) {
  std::set<std::string> keys, differing;
  for (const auto& run : runs)
    for (const auto& [key, value] : run.options)
      if (key != "run.name" && key != "run.dir") keys.insert(key);
  for (const auto& key : keys) {
    const auto* first = find(runs.front().options, key);
    if (std::ranges::any_of(runs, [&](const RunDetails& run) {
          const auto* value = find(run.options, key);
          return (value == nullptr) != (first == nullptr) || (value != nullptr && *value != *first);
        }))
      differing.insert(key);
  }
  return {differing.begin(), differing.end()};
}

}  // namespace troupe::store
