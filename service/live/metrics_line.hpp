/// A line of metrics.jsonl as JSON. Pure.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::service {

/// The object of a line; null: the line is none. What is nested deeper than any line of the recorder is left out, because copies of a deep
/// value recurse: a run's directory may come from elsewhere.
[[nodiscard]] nlohmann::ordered_json metrics_line(std::string_view text);

}  // namespace troupe::service
