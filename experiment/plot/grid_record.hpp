/// What pictures of a grid are drawn from: results.jsonl (docs/formats/grid.md). Reads only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace troupe::plot {

/// A key that varies, and its values: numbers by size, anything else in the order of the grid.
struct VariedKey {
  std::string key;
  std::vector<std::string> values;  // as text
  std::vector<double> numbers;      // empty unless every value is one
};

struct GridRun {
  nlohmann::json settings;  // key: value
  nlohmann::json summary;
  std::string series;  // what tells its line from others: the strategy, or the configuration where that says no more
  std::string directory;
};

struct GridRecord {
  std::string name;                 // the directory's
  std::vector<GridRun> runs;        // those that are done
  std::vector<VariedKey> keys;      // without the strategy, the base and the seed
  std::vector<std::string> series;  // in the order of the grid
};

/// Whether the directory is a grid's. Errc::io when that cannot be seen.
[[nodiscard]] core::Result<bool> is_grid(const std::string& directory);

/// Errc::config when no run is done; io as reading says.
[[nodiscard]] core::Result<GridRecord> read_grid(const std::string& directory);

/// The setting `key` of a run as text; empty when the run does not have it.
[[nodiscard]] std::string value_of(const GridRun& run, const std::string& key);

/// The number at a dotted name of the summary ("test.accuracy"); NaN where there is none.
[[nodiscard]] double metric_of(const GridRun& run, std::string_view metric);

/// "strategy.alpha" → "alpha"; "cluster.slowdown" → "slowdown".
[[nodiscard]] std::string short_key(const std::string& key);

/// "[1, 1, 4]" → "1 1 4".
[[nodiscard]] std::string short_value(const std::string& value);

}  // namespace troupe::plot
