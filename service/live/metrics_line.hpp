/// A line of metrics.jsonl as JSON. Pure.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::service {

/// The object of a line; null: the line is none. A run's directory may come from elsewhere: of a line of more than 4 KiB, what is nested deeper
/// than any of the recorder's is left out, because copies of a deep value recurse, and keys behind the 4096th, because each is looked for
/// among all before it.
[[nodiscard]] nlohmann::ordered_json metrics_line(std::string_view text);

}  // namespace troupe::service
