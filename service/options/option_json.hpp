/// The table of options as JSON. Pure.
#pragma once

#include <optional>

#include "core/config/config.hpp"
#include "service/http/message.hpp"

namespace troupe::service {

struct Bounds {
  std::optional<double> least, most;
  bool open = false;  // the least itself is not allowed
};

/// The bounds of numbers that a rule's text states.
[[nodiscard]] Bounds bounds_of(const core::Rule& rule);

/// Bare values: a Structure is its parsed JSON.
[[nodiscard]] Json json_of(const core::Value& value);

/// "boolean", "integer", "number", "text", "integers", "numbers", "texts", "structure".
[[nodiscard]] std::string_view type_of(const core::Value& value) noexcept;

/// `strategies`: the ones that read the key; empty: it is always in force.
[[nodiscard]] Json json_of(const core::Option& option, const std::vector<std::string>& strategies);

/// All options in the order of the schema. `strategy`: only those in force with it; empty: all, one row per default and rule.
[[nodiscard]] Json options_json(const core::Schema& schema, std::string_view strategy);

}  // namespace troupe::service
