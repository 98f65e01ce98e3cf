/// The [sweep] table of a grid file, and its ranges (docs/formats/grid.md), as written. Every error is Errc::config and names file:line. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <toml++/toml.h>

#include "core/error.hpp"

namespace troupe::grid {

/// Numbers from low to high, both included: of a [sweep] only.
struct Range {
  double low = 0, high = 0;
  bool log = false;  // even over logarithms
  bool operator==(const Range&) const = default;
};

struct SweepTable {
  std::string where;                  // file:line
  std::string method = "tpe";         // or "random"
  std::string schedule = "asha";      // or "none"
  std::string metric;                 // of the summary; empty: the accuracy on the split that decides
  std::string goal;                   // "max", "min"; empty: what the metric says
  std::int64_t runs = 0;              // settings that are tried at most; 0: no limit
  std::int64_t epochs = 0;            // that are trained at most, over all runs; 0: no limit
  double hours = 0;                   // after which no run trains; 0: no limit
  std::int64_t seed = 1;              // of the search, not of the runs
  std::int64_t start = 0;             // settings before the model of tpe decides; 0: its default
  std::int64_t least = 1;             // asha: epochs of the first rung
  double eta = 3;                     // asha: one in eta goes on
  std::vector<std::int64_t> rungs{};  // asha: epochs, in place of least and eta's powers
};

[[nodiscard]] core::Result<SweepTable> read_sweep_table(const toml::node& node, const std::string& path);

/// { linear = [a, b] } or { log = [a, b] }, as the value of `key` at `where`.
[[nodiscard]] core::Result<Range> read_range(const toml::table& table, const std::string& key,
                                             const std::string& where);

}  // namespace troupe::grid
