/// Writes what was read of a run into the tables. Thread rule: one thread at a time; within a Transaction of the caller's.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.hpp"
#include "store/metrics_reader.hpp"
#include "store/run_notes.hpp"
#include "store/run_values.hpp"

namespace troupe::store {

/// A row of the table `directories`.
struct DirectoryRow {
  std::string path;           // relative to the store's directory
  std::string kind;           // run, grid, foreign
  std::int64_t modified = 0;  // time of its last change, ns; 0: look at it again
  std::string problem;        // why it is foreign, or what of it cannot be read
};

/// A run as its files describe it.
struct RunRow {
  std::int64_t id = 0;  // of its directory
  std::string name, started, status, grid, error;
  Values config, results;
  std::string summary;  // summary.json, or what is known so far
  RunNotes notes;
  std::vector<std::pair<std::string, std::string>> lineage;  // kind, source
};

/// The most points of a series. A longer series of steps is halved: neighbours are averaged.
inline constexpr std::int64_t kMostPoints = 2000;

class Writer {
 public:
  /// REQUIRES a database with the schema, which outlives it.
  explicit Writer(Database& database);

  /// Forgets the ids that it knows. REQUIRED at the beginning of each transaction.
  void begin();
  /// Inserts or replaces the directory with this path. Returns its id.
  std::int64_t put(const DirectoryRow& directory);
  void put(const RunRow& run);
  void put_status(std::int64_t run, const std::string& status);
  void put_notes(std::int64_t run, const RunNotes& notes);
  void put(std::int64_t run, const NewPoints& points);
  /// The file (inode) was read up to the byte `position`.
  void put_reading(std::int64_t run, std::int64_t file, std::int64_t position, const std::string& state);
  /// Forgets the run's points and how far its file was read.
  void forget_points(std::int64_t run);
  /// Removes the directory's row and all of its run.
  void remove(std::int64_t id);
  /// Removes configurations that no run has any more.
  void remove_unused_configs();

 private:
  using Ids = std::map<std::string, std::int64_t>;
  static std::int64_t id_of(Ids& ids, Statement& put, const std::string& name);
  std::int64_t config_id(const Values& config);
  void thin(std::int64_t run, std::int64_t series);

  Database& database_;
  Ids keys_, series_;
  Statement put_directory_, put_run_, put_status_, put_key_, put_series_, find_config_, put_config_, put_option_,
      put_summary_;
  Statement put_result_, put_note_, put_tag_, put_lineage_, put_point_, put_reading_;
};

}  // namespace troupe::store
