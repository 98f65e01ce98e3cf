/// A grid file (docs/formats/grid.md) as written: its configurations, varied keys and their values. Not expanded into runs. Every error is
/// Errc::config and names file:line. Thread rule: values and pure functions; load() reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/grid/sweep_table.hpp"
#include "core/config/config.hpp"
#include "core/error.hpp"

namespace troupe::grid {

/// A key and its values, or its range. A value is TOML on one line, in canonical form: equal values have equal text.
struct Axis {
  std::string key;
  std::vector<std::string> values;
  std::string where;  // file:line
  std::optional<Range> range{};
  bool operator==(const Axis&) const = default;
};

/// Values for the runs of one strategy only.
struct Only {
  std::string strategy;
  std::vector<Axis> axes;
};

/// Omits a combination when each of `keys` has one of its values. The keys may include kBaseKey and kSeedKey.
struct Exclude {
  std::vector<Axis> keys;
};

inline constexpr std::string_view kBaseKey = "base";
inline constexpr std::string_view kSeedKey = "run.seed";
inline constexpr std::string_view kStrategyKey = "strategy.name";

struct GridFile {
  std::string path;
  std::string name;                     // file name without folder and extension: name of the grid's directory
  std::vector<std::string> bases;       // configurations; at least one
  std::vector<Axis> axes;               // [grid], in the order of the file
  std::vector<std::vector<Axis>> zips;  // [[zip]]: axes of one length that advance together
  std::vector<Only> only;               // [only.<strategy>]
  std::vector<std::int64_t> seeds;      // empty: the base's own seed
  std::vector<Exclude> excludes;
  std::optional<SweepTable> sweep;  // none: every combination is a run
};

/// `schema` defines the valid keys. Values are checked later, with the whole combination (resolved_grid.hpp).
[[nodiscard]] core::Result<GridFile> parse(std::string_view text, const std::string& path, const core::Schema& schema);
[[nodiscard]] core::Result<GridFile> load(const std::string& path, const core::Schema& schema);

/// Applies --set to varied keys: such a key has that one value in every run. Other overrides apply to the configuration. Errc::config for a
/// key of a [[zip]] group, and for run.name, which the grid sets.
[[nodiscard]] core::Result<void> fix(GridFile& file, const std::vector<std::string>& overrides);

/// "strategy.tau=4" → "strategy.tau".
[[nodiscard]] std::string key_of(const std::string& override_text);

}  // namespace troupe::grid
