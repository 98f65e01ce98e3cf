/// Values of JSON that may say anything. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace troupe::apps {

using StateJson = nlohmann::ordered_json;

/// The finite number under `key`; nothing: it has none.
[[nodiscard]] std::optional<double> number_at(const StateJson& object, const char* key);
/// The same as a count; 0: it has none, or one that is below 0 or above 10^15.
[[nodiscard]] std::uint64_t count_at(const StateJson& object, const char* key);
[[nodiscard]] std::string text_at(const StateJson& object, const char* key);
/// The list under `key`; an empty one: it has none.
[[nodiscard]] const StateJson& list_at(const StateJson& object, const char* key);
/// The object under `key`; null: it has none.
[[nodiscard]] const StateJson& object_at(const StateJson& object, const char* key);

}  // namespace troupe::apps
