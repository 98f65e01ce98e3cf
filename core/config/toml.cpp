#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/config/config.hpp"

namespace troupe::core {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return fmt::format("{}", value); }

/// The shortest text that reads back to the same bits and never looks like an integer.
std::string text_of(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string text_of(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    switch (c) {
      case '"': text += "\\\""; break;
      case '\\': text += "\\\\"; break;
      case '\b': text += "\\b"; break;
      case '\t': text += "\\t"; break;
      case '\n': text += "\\n"; break;
      case '\f': text += "\\f"; break;
      case '\r': text += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          text += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
        else
          text += c;
    }
  }
  return text += '"';
}

template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text = "[";
  for (const T& element : list) text += (text.size() > 1 ? ", " : "") + text_of(element);
  return text += "]";
}

std::string key_text(const std::string& key) {
  const auto bare = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  return !key.empty() && std::all_of(key.begin(), key.end(), bare) ? key : text_of(key);
}

std::string text_of(const nlohmann::json& value) {
  using Type = nlohmann::json::value_t;
  switch (value.type()) {
    case Type::boolean: return text_of(value.get<bool>());
    case Type::number_integer:
    case Type::number_unsigned: return text_of(value.get<std::int64_t>());
    case Type::number_float: return text_of(value.get<double>());
    case Type::string: return text_of(value.get_ref<const std::string&>());
    case Type::array: {
      // One table per line, because users read lists of layers.
      const bool lines = value.size() > 1 && value.front().is_object();
      std::string text = "[";
      for (const auto& element : value)
        text += (text.size() > 1 ? (lines ? "," : ", ") : "") + std::string(lines ? "\n  " : "") + text_of(element);
      return text += lines ? ",\n]" : "]";
    }
    case Type::object: {
      std::string text = "{";
      for (const auto& [key, element] : value.items())
        text += (text.size() > 1 ? ", " : "") + fmt::format("{} = {}", key_text(key), text_of(element));
      return text += "}";
    }
    default: throw std::invalid_argument("a Structure holds JSON that TOML cannot express");
  }
}

std::string text_of(const Structure& structure) {
  return structure.json.empty() ? "[]" : text_of(nlohmann::json::parse(structure.json));
}

}  // namespace

std::string to_toml(const Value& value) {
  return std::visit([](const auto& v) { return text_of(v); }, value);
}

std::string Config::to_toml() const { return text(false); }
std::string Config::to_toml_with_reasons() const { return text(true); }

std::string Config::text(bool with_reasons) const {
  std::vector<std::pair<std::string, std::string>> sections;  // name, body; in the order of the schema
  for (const std::string& key : order_) {
    const Value& v = value(key);
    if (const auto* structure = std::get_if<Structure>(&v); structure != nullptr && structure->json.empty()) continue;
    const auto dot = key.rfind('.');
    const std::string section = dot == std::string::npos ? "" : key.substr(0, dot);
    auto it = std::find_if(sections.begin(), sections.end(), [&](const auto& s) { return s.first == section; });
    if (it == sections.end()) it = sections.insert(section.empty() ? sections.begin() : sections.end(), {section, ""});
    const auto why = std::ranges::find(reasons_, key, &std::pair<std::string, std::string>::first);
    it->second += fmt::format("{} = {}{}\n", key.substr(dot + 1), core::to_toml(v),
                              why == reasons_.end() || !with_reasons ? "" : "  # " + why->second);
  }
  std::string text;
  for (const auto& [section, body] : sections) {
    if (!text.empty()) text += '\n';
    if (!section.empty()) text += fmt::format("[{}]\n", section);
    text += body;
  }
  return text;
}

}  // namespace troupe::core
