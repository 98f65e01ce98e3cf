/// The data of a grid's pictures, from results.jsonl (docs/formats/grid.md). Reads only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace troupe::plot {

/// A varied key and its values: numbers by size, other values in the order of the grid.
struct VariedKey {
  std::string key;
  std::vector<std::string> values;  // as text
  std::vector<double> numbers;      // empty unless all values are numbers
};

struct GridRun {
  nlohmann::json settings;  // key: value
  nlohmann::json summary;
  std::string series;  // name of its line: the strategy, or the configuration where the strategy does not distinguish
  std::string directory;
  std::string seed;
};

struct GridRecord {
  std::string name;                 // the directory's name
  std::vector<GridRun> runs;        // the completed runs
  std::vector<VariedKey> keys;      // without the strategy, the base and the seed
  std::vector<std::string> series;  // in the order of the grid
  /// What pictures write instead of names that no installed font has (fonts.hpp).
  std::map<std::string, std::string> replaced{};
};

/// `name` as pictures write it.
[[nodiscard]] std::string shown(const GridRecord& grid, const std::string& name);

/// Whether `directory` is a grid's. Errc::io when it cannot be read.
[[nodiscard]] core::Result<bool> is_grid(const std::string& directory);

/// The directories of runs are in `directory`, wherever it was moved. Errc::config when no run is complete; Errc::io when reading fails.
[[nodiscard]] core::Result<GridRecord> read_grid(const std::string& directory);

/// The setting `key` of a run as text; empty when the run lacks it.
[[nodiscard]] std::string value_of(const GridRun& run, const std::string& key);

/// The number under a dotted name of the summary ("test.accuracy"); NaN without one.
[[nodiscard]] double metric_of(const GridRun& run, std::string_view metric);

/// "strategy.alpha" → "alpha"; "cluster.slowdown" → "slowdown".
[[nodiscard]] std::string short_key(const std::string& key);

/// "[1, 1, 4]" → "1 1 4".
[[nodiscard]] std::string short_value(const std::string& value);

}  // namespace troupe::plot
