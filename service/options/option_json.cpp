#include "service/options/option_json.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::service {
namespace {

std::optional<double> number_at(std::string_view text) {
  // "1,000,000": as core::readable() writes it.
  std::string digits;
  for (const char c : text) {
    if (c == ',') continue;
    if ((c < '0' || c > '9') && c != '.' && c != '-' && c != 'e' && c != '+') break;
    digits += c;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || digits.empty()) return std::nullopt;
  return value;
}

std::optional<double> after(std::string_view text, std::string_view word) {
  const auto found = text.find(word);
  return found == std::string_view::npos ? std::nullopt : number_at(text.substr(found + word.size()));
}

}  // namespace

Bounds bounds_of(const core::Rule& rule) {
  const std::string_view text = rule.text;
  if (const auto least = after(text, "between ")) {
    const auto rest = text.substr(text.find("between "));
    return {least, after(rest, " and "), false};
  }
  if (const auto least = after(text, "≥ ")) return {least, std::nullopt, false};
  if (const auto least = after(text, "> ")) return {least, std::nullopt, true};
  return {};
}

Json json_of(const core::Value& value) {
  return std::visit(
      []<class T>(const T& v) -> Json {
        if constexpr (std::is_same_v<T, core::Structure>)
          return v.json.empty() ? Json(nullptr) : Json::parse(v.json, nullptr, false);
        else
          return v;
      },
      value);
}

std::string_view type_of(const core::Value& value) noexcept {
  constexpr std::array<std::string_view, 8> kTypes{"boolean",  "integer", "number", "text",
                                                   "integers", "numbers", "texts",  "structure"};
  return kTypes.at(value.index());
}

Json json_of(const core::Option& option, const std::vector<std::string>& strategies) {
  const auto automatic = [&] {
    const auto* number = std::get_if<double>(&option.default_value);
    return option.rule.automatic && number != nullptr && *number == core::kAutomatic;
  };
  Json json{{"key", option.key},
            {"section", option.key.substr(0, option.key.rfind('.'))},
            {"type", type_of(option.default_value)},
            {"default", automatic() ? Json("auto") : json_of(option.default_value)},
            {"help", option.help},
            {"rule", option.rule.text}};
  if (!option.rule.names.empty()) json["choices"] = option.rule.names;
  const auto bounds = bounds_of(option.rule);
  if (bounds.least) json[bounds.open ? "above" : "minimum"] = *bounds.least;
  if (bounds.most) json["maximum"] = *bounds.most;
  if (option.rule.automatic) json["automatic"] = true;
  if (option.rule.allows && !option.rule.allows(option.default_value) && !automatic()) json["required"] = true;
  if (!strategies.empty()) json["strategies"] = strategies;
  return json;
}

Json options_json(const core::Schema& schema, std::string_view strategy) {
  auto all = Json::array();
  std::vector<const core::Option*> done;
  const auto is_same = [](const core::Option& a, const core::Option& b) {
    return a.key == b.key && a.scope.empty() == b.scope.empty() && a.default_value == b.default_value &&
           a.rule.text == b.rule.text && a.help == b.help;
  };
  for (const auto& option : schema.options()) {
    if (!strategy.empty() && schema.find(option.key, strategy) != &option) continue;
    if (std::ranges::any_of(done, [&](const auto* other) { return is_same(*other, option); })) continue;
    done.push_back(&option);
    std::vector<std::string> strategies;
    for (const auto& other : schema.options())
      if (is_same(option, other) && !other.scope.empty()) strategies.push_back(other.scope);
    all.push_back(json_of(option, strategies));
  }
  return all;
}

}  // namespace troupe::service
