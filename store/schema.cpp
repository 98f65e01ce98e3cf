#include "store/schema.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace troupe::store {
namespace {

bool has_listing(Database& database) {
  return database.number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'listing'") == 1;
}

constexpr std::int64_t kApplication = 0x54525055;  // "TRPU"

/// Numbers sort before texts in a column: `value < ''` are the numbers.
constexpr const char* kTables = R"(
CREATE TABLE store(generation INTEGER NOT NULL);
INSERT INTO store VALUES(random());
CREATE TABLE directories(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, modified INTEGER NOT NULL, problem TEXT);
CREATE TABLE runs(id INTEGER PRIMARY KEY, name TEXT, started TEXT, status TEXT, grid TEXT, config INTEGER, seed INTEGER, strategy TEXT,
  model TEXT, dataset TEXT, workers INTEGER, epochs REAL, steps INTEGER, accuracy REAL, loss REAL, train_loss REAL, images_per_s REAL,
  wall_s REAL, error TEXT, note TEXT);
CREATE INDEX runs_by_start ON runs(started, id);
CREATE INDEX runs_by_accuracy ON runs(accuracy, id);
CREATE INDEX runs_by_config ON runs(config);
CREATE TABLE readings(run INTEGER PRIMARY KEY, file INTEGER NOT NULL, position INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE keys(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE configs(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE);
CREATE TABLE options(config INTEGER, key INTEGER, value, PRIMARY KEY(config, key)) WITHOUT ROWID;
CREATE INDEX options_by_value ON options(key, value, config);
CREATE TABLE summaries(run INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE results(run INTEGER, key INTEGER, value, PRIMARY KEY(run, key)) WITHOUT ROWID;
CREATE INDEX results_by_value ON results(key, value, run);
CREATE TABLE tags(tag TEXT, run INTEGER, PRIMARY KEY(tag, run)) WITHOUT ROWID;
CREATE INDEX tags_by_run ON tags(run);
CREATE TABLE lineage(run INTEGER, kind TEXT, source TEXT, PRIMARY KEY(run, kind, source)) WITHOUT ROWID;
CREATE TABLE points(run INTEGER, series INTEGER, epoch REAL, seconds REAL, value REAL, PRIMARY KEY(run, series, epoch)) WITHOUT ROWID;
)";

}  // namespace

core::Result<bool> has_schema(Database& database) {
  const bool same = database.number("PRAGMA application_id") == kApplication &&
                    database.number("PRAGMA user_version") == kSchemaVersion;
  return database.check().map([&] { return same; });
}

core::Result<void> make_schema(Database& database, Make make) {
  Transaction all(database);
  if (make == Make::unless_there) {
    const auto there = has_schema(database);  // another process may have made it meanwhile
    if (!there) return tl::unexpected(there.error());
    if (*there) return all.commit();
  }
  std::vector<std::string> old;
  for (Statement tables(database, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
       tables.next();)
    old.push_back(tables.text(0));
  for (const auto& table : old) database.run(fmt::format("DROP TABLE \"{}\"", table));
  database.run(kTables);
  add_missing(database);
  database.run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplication, kSchemaVersion));
  return all.commit();
}

void add_missing(Database& database) {
  database.run("CREATE INDEX IF NOT EXISTS folders ON directories(path) WHERE kind <> 'run'");
  database.run("CREATE INDEX IF NOT EXISTS problems ON directories(path) WHERE problem IS NOT NULL");
  database.run("CREATE INDEX IF NOT EXISTS runs_by_name ON runs(name)");
  database.run("CREATE INDEX IF NOT EXISTS runs_by_status ON runs(status)");
  database.run("CREATE TABLE IF NOT EXISTS listing(changed INTEGER NOT NULL)");
}

std::int64_t known_listing(Database& database) {
  return has_listing(database) ? database.number("SELECT changed FROM listing") : 0;
}

void keep_listing(Database& database, std::int64_t time) {
  if (!has_listing(database)) return;
  database.run("DELETE FROM listing");
  if (time != 0) Statement(database, "INSERT INTO listing VALUES(?)").with(time).run();
}

std::int64_t generation(Database& database) { return database.number("SELECT generation FROM store"); }

}  // namespace troupe::store
