#include "apps/client/json_values.hpp"

#include <cmath>

namespace troupe::apps {
namespace {

const StateJson* value_at(const StateJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::optional<double> number_at(const StateJson& object, const char* key) {
  const auto* const found = value_at(object, key);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::uint64_t count_at(const StateJson& object, const char* key) {
  constexpr double kMost = 1e15;
  const auto number = number_at(object, key).value_or(0);
  return number >= 0 && number <= kMost ? static_cast<std::uint64_t>(number) : 0;
}

std::string text_at(const StateJson& object, const char* key) {
  const auto* const found = value_at(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

const StateJson& list_at(const StateJson& object, const char* key) {
  static const StateJson empty = StateJson::array();
  const auto* const found = value_at(object, key);
  return found != nullptr && found->is_array() ? *found : empty;
}

const StateJson& object_at(const StateJson& object, const char* key) {
  static const StateJson none;
  const auto* const found = value_at(object, key);
  return found != nullptr && found->is_object() ? *found : none;
}

}  // namespace troupe::apps
