#include "store/writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace troupe::store {
namespace {

constexpr std::array kOfRun{"readings", "summaries", "results", "tags", "lineage", "points"};

Cell value_of(const Values& values, std::string_view key) {
  const auto* found = find(values, key);
  return found == nullptr ? Cell() : *found;
}

/// The first of two that is there.
Cell first_of(Cell first, Cell second) { return first.index() == 0 ? std::move(second) : std::move(first); }

}  // namespace

Writer::Writer(Database& database)
    : database_(database),
      put_directory_(database,
                     "INSERT INTO directories(path, kind, modified, problem) VALUES(?, ?, ?, ?) "
                     "ON CONFLICT(path) DO UPDATE SET kind = excluded.kind, modified = excluded.modified, "
                     "problem = excluded.problem RETURNING id"),
      put_run_(database,
               "INSERT OR REPLACE INTO runs(id, name, started, status, grid, config, seed, strategy, model, dataset, "
               "workers, epochs, steps, accuracy, loss, train_loss, images_per_s, wall_s, error, note) "
               "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      put_status_(database, "UPDATE runs SET status = ?1 WHERE id = ?2 AND status <> ?1"),
      put_key_(database, "INSERT INTO keys(name) VALUES(?) ON CONFLICT(name) DO UPDATE SET name = name RETURNING id"),
      put_series_(database,
                  "INSERT INTO series(name) VALUES(?) ON CONFLICT(name) DO UPDATE SET name = name RETURNING id"),
      find_config_(database, "SELECT id FROM configs WHERE hash = ?"),
      put_config_(database, "INSERT INTO configs(hash) VALUES(?) RETURNING id"),
      put_option_(database, "INSERT OR REPLACE INTO options(config, key, value) VALUES(?, ?, ?)"),
      put_summary_(database, "INSERT OR REPLACE INTO summaries(run, json) VALUES(?, ?)"),
      put_result_(database, "INSERT OR REPLACE INTO results(run, key, value) VALUES(?, ?, ?)"),
      put_note_(database, "UPDATE runs SET note = ? WHERE id = ?"),
      put_tag_(database, "INSERT OR IGNORE INTO tags(tag, run) VALUES(?, ?)"),
      put_lineage_(database, "INSERT OR IGNORE INTO lineage(run, kind, source) VALUES(?, ?, ?)"),
      put_point_(database, "INSERT OR REPLACE INTO points(run, series, epoch, seconds, value) VALUES(?, ?, ?, ?, ?)"),
      put_reading_(database, "INSERT OR REPLACE INTO readings(run, file, position, state) VALUES(?, ?, ?, ?)") {}

void Writer::begin() {
  keys_.clear();
  series_.clear();
}

std::int64_t Writer::id_of(Ids& ids, Statement& put, const std::string& name) {
  if (const auto known = ids.find(name); known != ids.end()) return known->second;
  std::int64_t id = 0;
  if (put.with(name).next()) id = put.integer(0);
  put.run();
  return ids[name] = id;
}

std::int64_t Writer::config_id(const Values& config) {
  const auto hash = identity_of(config);
  std::int64_t id = 0;
  if (find_config_.with(hash).next()) id = find_config_.integer(0);
  find_config_.run();
  if (id != 0) return id;
  if (put_config_.with(hash).next()) id = put_config_.integer(0);
  put_config_.run();
  for (const auto& [key, value] : config)
    if (key != "run.name" && key != "run.dir" && key != "run.seed")
      put_option_.with(id, id_of(keys_, put_key_, key), value).run();
  return id;
}

std::int64_t Writer::put(const DirectoryRow& directory) {
  std::int64_t id = 0;
  const auto problem = directory.problem.empty() ? Cell() : Cell(directory.problem);
  if (put_directory_.with(directory.path, directory.kind, directory.modified, problem).next())
    id = put_directory_.integer(0);
  put_directory_.run();
  return id;
}

void Writer::put(const RunRow& run) {
  const auto& results = run.results;
  const auto text = [](const std::string& given) { return given.empty() ? Cell() : Cell(given); };
  const auto result_or_option = [&](const char* result, const char* option) {
    return first_of(value_of(results, result), value_of(run.config, option));
  };
  put_run_
      .with(run.id, run.name, text(run.started), run.status, text(run.grid),
            run.config.empty() ? Cell() : Cell(config_id(run.config)), value_of(run.config, "run.seed"),
            result_or_option("strategy", "strategy.name"), result_or_option("model", "model.name"),
            result_or_option("dataset", "data.name"), result_or_option("workers", "cluster.workers"),
            value_of(results, "epochs"), value_of(results, "steps"), value_of(results, "test.accuracy"),
            value_of(results, "test.loss"), value_of(results, "train.loss"), value_of(results, "train.images_per_s"),
            value_of(results, "wall_s"), text(run.error), text(run.notes.note))
      .run();
  for (const char* table : {"results", "lineage"})
    Statement(database_, fmt::format("DELETE FROM {} WHERE run = ?", table)).with(run.id).run();
  for (const auto& [key, value] : results) put_result_.with(run.id, id_of(keys_, put_key_, key), value).run();
  put_summary_.with(run.id, run.summary).run();
  for (const auto& [kind, source] : run.lineage) put_lineage_.with(run.id, kind, source).run();
  put_notes(run.id, run.notes);
}

void Writer::put_status(std::int64_t run, const std::string& status) { put_status_.with(status, run).run(); }

void Writer::put_notes(std::int64_t run, const RunNotes& notes) {
  put_note_.with(notes.note.empty() ? Cell() : Cell(notes.note), run).run();
  Statement(database_, "DELETE FROM tags WHERE run = ?").with(run).run();
  for (const auto& tag : notes.tags) put_tag_.with(tag, run).run();
}

void Writer::put(std::int64_t run, const NewPoints& points) {
  if (std::isfinite(points.kept))
    Statement(database_, "DELETE FROM points WHERE run = ? AND epoch > ?").with(run, points.kept).run();
  std::set<std::int64_t> steps;
  for (const auto& point : points.points) {
    const auto series = id_of(series_, put_series_, point.series);
    if (point.series.starts_with("step.")) steps.insert(series);
    put_point_.with(run, series, point.epoch, point.seconds, point.value).run();
  }
  for (const auto series : steps) thin(run, series);
}

void Writer::thin(std::int64_t run, std::int64_t series) {
  for (;;) {
    std::vector<Point> points;
    Statement all(database_, "SELECT epoch, seconds, value FROM points WHERE run = ? AND series = ? ORDER BY epoch");
    for (all.with(run, series); all.next();) points.push_back({{}, all.real(0), all.real(1), all.real(2)});
    if (static_cast<std::int64_t>(points.size()) <= kMostPoints) return;
    Statement(database_, "DELETE FROM points WHERE run = ? AND series = ?").with(run, series).run();
    for (std::size_t i = 0; i < points.size(); i += 2) {
      const auto& first = points[i];
      const auto& second = points[std::min(i + 1, points.size() - 1)];
      put_point_.with(run, series, second.epoch, second.seconds, (first.value + second.value) / 2).run();
    }
    if (!database_.check()) return;
  }
}

void Writer::put_reading(std::int64_t run, std::int64_t file, std::int64_t position, const std::string& state) {
  put_reading_.with(run, file, position, state).run();
}

void Writer::forget_points(std::int64_t run) {
  for (const char* table : {"points", "readings"})
    Statement(database_, fmt::format("DELETE FROM {} WHERE run = ?", table)).with(run).run();
}

void Writer::remove(std::int64_t id) {
  for (const char* table : kOfRun)
    Statement(database_, fmt::format("DELETE FROM {} WHERE run = ?", table)).with(id).run();
  for (const char* table : {"runs", "directories"})
    Statement(database_, fmt::format("DELETE FROM {} WHERE id = ?", table)).with(id).run();
}

void Writer::remove_unused_configs() {
  database_.run(
      "DELETE FROM options WHERE config IN "
      "(SELECT id FROM configs WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.config = configs.id));"
      "DELETE FROM configs WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.config = configs.id)");
}

}  // namespace troupe::store
