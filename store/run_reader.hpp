/// Reads the directory of one run into a store. Thread rule: one thread at a time; that of the database.
#pragma once

#include <cstdint>
#include <string>

#include "store/writer.hpp"

namespace troupe::store {

class RunReader {
 public:
  RunReader(Database& database, const std::string& root);

  /// REQUIRED at the beginning of each transaction.
  void begin() { writer_.begin(); }

  /// `path` is relative to root, `grid` the name of the grid it is in or empty, `modified` the directory's time. What cannot be read is the
  /// row's problem. REQUIRES a transaction.
  void read(const std::string& path, const std::string& grid, std::int64_t modified);
  /// The status now of a run of which nothing but its lock has changed since it was read. Needs no transaction.
  [[nodiscard]] std::string status(std::int64_t run, const std::string& path);

 private:
  /// Returns what has gone wrong, or nothing.
  std::string read_metrics(std::int64_t run, const std::string& directory, const std::string& monitor,
                           MetricsReader& reader);
  [[nodiscard]] static bool is_held(const std::string& directory);

  std::string root_;
  Writer writer_;
  Statement find_reading_;
};

}  // namespace troupe::store
