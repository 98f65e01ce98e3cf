/// Conditions on runs: `strategy=easgd accuracy>0.99 tag=paper` (docs/runs.md). Pure functions.
///
///     filter     = [condition {["and"] condition}]
///     condition  = key operator value
///     key        = letters, digits, "_", "-", "."
///     operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"
///     value      = text without blanks, or "text in quotes" with \" and \\ in it
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::store {

enum class Comparison : std::uint8_t { equal, unequal, less, less_or_equal, greater, greater_or_equal, contains };

struct Condition {
  std::string key;
  Comparison comparison = Comparison::equal;
  std::string value;
  std::size_t column = 0;  // of the key in the filter, from 1
  bool operator==(const Condition&) const = default;
};

/// The conditions of a filter, all of which must hold. Errc::usage: a syntax error, with its column.
[[nodiscard]] core::Result<std::vector<Condition>> parse_filter(std::string_view text);

}  // namespace troupe::store
