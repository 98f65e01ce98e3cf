#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "core/config/config.hpp"
#include "core/text/layout.hpp"
#include "core/text/nearest.hpp"
#include "core/text/read_text.hpp"

namespace troupe::core {
namespace {

constexpr std::string_view kScopeKey = "strategy.name";

/// One key set by a file or an override, not yet checked. Nodes live as long as the parsed documents.
struct Setting {
  std::string key;
  const toml::node* node = nullptr;
  std::string where;  // "configs/a.toml:7" or "--set"
};

tl::unexpected<Error> refuse(std::string_view where, std::string message) {
  return fail(Errc::config, fmt::format("{}: {}", where, std::move(message)));
}

std::string at(std::string_view origin, const toml::source_region& source) {
  return fmt::format("{}:{}", origin, source.begin.line);
}

/// The value as TOML on one line.
std::string one_line(const toml::node& node) {
  std::string text;
  if (const auto* array = node.as_array()) {
    for (const auto& element : *array) text += (text.empty() ? "" : ", ") + one_line(element);
    return fmt::format("[{}]", text);
  }
  if (const auto* table = node.as_table()) {
    for (const auto& [key, element] : *table)
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key.str(), one_line(element));
    return fmt::format("{{{}}}", text);
  }
  if (const auto* string = node.as_string()) return to_toml(Value{string->get()});
  if (const auto* number = node.as_floating_point()) return to_toml(Value{number->get()});  // toml++ writes 17 digits
  std::ostringstream other;
  node.visit([&](const auto& n) { other << n; });
  return other.str();
}

/// The same, cut to a length that fits a message.
std::string shown(const toml::node& node) {
  constexpr std::size_t kLongest = 80;
  std::string text = one_line(node);
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while ((text[end] & 0xC0) == 0x80) --end;  // not in the middle of a character
  return text.substr(0, end) + "…";
}

// --- TOML nodes to values. On failure each conversion returns the text of what the value must be. ---

template <class T>
using Converted = tl::expected<T, std::string>;

Converted<bool> convert(const toml::node& node, bool*) {
  if (const auto* v = node.as_boolean()) return v->get();
  return tl::unexpected<std::string>("must be true or false");
}

Converted<std::int64_t> convert(const toml::node& node, std::int64_t*) {
  if (const auto* v = node.as_integer()) return v->get();
  return tl::unexpected<std::string>("must be an integer");
}

Converted<double> convert(const toml::node& node, double*) {
  if (const auto* v = node.as_integer()) return static_cast<double>(v->get());
  const auto* v = node.as_floating_point();
  if (v == nullptr) return tl::unexpected<std::string>("must be a number");
  if (!std::isfinite(v->get())) return tl::unexpected<std::string>("must be a finite number");
  return v->get();
}

Converted<std::string> convert(const toml::node& node, std::string*) {
  if (const auto* v = node.as_string()) return v->get();
  return tl::unexpected<std::string>("must be text in quotes");
}

template <class T>
Converted<std::vector<T>> convert(const toml::node& node, std::vector<T>*) {
  std::vector<T> list;
  const auto add = [&](const toml::node& element) -> Converted<std::vector<T>> {
    auto value = convert(element, static_cast<T*>(nullptr));
    if (!value) return tl::unexpected(value.error() + ", or a list of such");
    list.push_back(std::move(*value));
    return {};
  };
  if (const auto* array = node.as_array()) {
    for (const auto& element : *array)
      if (auto added = add(element); !added) return added;
  } else if (auto added = add(node); !added) {
    return added;
  }
  return list;
}

Converted<nlohmann::json> convert(const toml::node& node, nlohmann::json*) {
  nlohmann::json json;
  if (const auto* table = node.as_table()) {
    json = nlohmann::json::object();
    for (const auto& [key, element] : *table) {
      auto value = convert(element, static_cast<nlohmann::json*>(nullptr));
      if (!value) return value;
      json[std::string(key.str())] = std::move(*value);
    }
  } else if (const auto* array = node.as_array()) {
    json = nlohmann::json::array();
    for (const auto& element : *array) {
      auto value = convert(element, static_cast<nlohmann::json*>(nullptr));
      if (!value) return value;
      json.push_back(std::move(*value));
    }
  } else if (const auto* boolean = node.as_boolean()) {
    json = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    json = integer->get();
  } else if (const auto* text = node.as_string()) {
    json = text->get();
  } else if (const auto* number = node.as_floating_point(); number != nullptr && std::isfinite(number->get())) {
    json = number->get();
  } else {
    return tl::unexpected<std::string>("must not contain dates, times, NaN or infinity");
  }
  return json;
}

Converted<Structure> convert(const toml::node& node, Structure*) {
  if (!node.is_array() && !node.is_table()) return tl::unexpected<std::string>("must be a list of tables");
  return convert(node, static_cast<nlohmann::json*>(nullptr)).map([](const nlohmann::json& json) {
    return Structure{json.dump()};
  });
}

/// `node` converted to the type of the option's default.
Converted<Value> convert_like(const Value& like, const toml::node& node) {
  return std::visit(
      [&]<class T>(const T&) -> Converted<Value> {
        return convert(node, static_cast<T*>(nullptr)).map([](T&& v) { return Value{std::move(v)}; });
      },
      like);
}

/// Checks the type, then the rule.
Result<Value> checked(const Option& option, const Setting& setting) {
  if (const auto* word = setting.node->as_string(); option.rule.automatic && word != nullptr && word->get() == "auto")
    return Value{kAutomatic};
  auto value = convert_like(option.default_value, *setting.node);
  if (!value) {
    auto wanted = value.error() + (option.rule.automatic ? ", or \"auto\"" : "");
    if (std::holds_alternative<std::string>(option.default_value) && !option.rule.text.empty())
      wanted += ": " + option.rule.text;
    return refuse(setting.where, fmt::format("{} = {}: {}", setting.key, shown(*setting.node), wanted));
  }
  if (option.rule.allows && !option.rule.allows(*value)) {
    const auto* text = std::get_if<std::string>(&*value);
    const auto hint = text == nullptr ? "" : nearest_hint(*text, option.rule.names, Quotes::yes);
    return refuse(setting.where,
                  fmt::format("{} = {}: must be {}{}", setting.key, shown(*setting.node), option.rule.text, hint));
  }
  return std::move(*value);
}

// --- The settings of a document ---

bool is_key(const Schema& schema, std::string_view key) {
  return std::any_of(schema.options().begin(), schema.options().end(), [&](const Option& o) { return o.key == key; });
}

bool is_section(const Schema& schema, const std::string& name) {
  return std::any_of(schema.options().begin(), schema.options().end(),
                     [&](const Option& o) { return o.key.starts_with(name + "."); });
}

std::string unknown_section(const Schema& schema, const std::string& name) {
  const std::string message = fmt::format("unknown section [{}]", name);
  const std::string near = schema.nearest_section(name);
  if (!near.empty()) return message + fmt::format(" (nearest: [{}])", near);
  return message + fmt::format(": there are [{}]", fmt::join(schema.sections(), "], ["));
}

/// Flattens `table` into settings: descends into sections of the schema, stops at its keys.
Result<void> collect(const Schema& schema, const toml::table& table, const std::string& prefix, std::string_view origin,
                     std::vector<Setting>& settings) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    std::string where = at(origin, name.source());
    if (is_key(schema, key)) {
      settings.push_back({key, &node, std::move(where)});
    } else if (const auto* inner = node.as_table()) {
      if (!is_section(schema, key)) return refuse(where, unknown_section(schema, key));
      if (auto result = collect(schema, *inner, key + ".", origin, settings); !result) return result;
    } else if (is_section(schema, key)) {
      return refuse(where, fmt::format("\"{}\" is a section: write [{}] and its keys below", key, key));
    } else {
      return refuse(where, schema.unknown(key));
    }
  }
  return {};
}

/// TOML forbids duplicate keys but misses quoted ones: "train.lr" = 1 beside [train] lr = 2.
Result<void> check_once(const std::vector<Setting>& settings) {
  std::map<std::string_view, std::string_view> places;
  for (const Setting& setting : settings)
    if (const auto [other, is_new] = places.emplace(setting.key, setting.where); !is_new)
      return refuse(setting.where, fmt::format("{} is set twice: here and at {}", setting.key, other->second));
  return {};
}

Result<toml::table> parse_document(std::string_view text, const std::string& origin) {
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return refuse(at(origin, error.source()), std::string(error.description()));
  }
}

/// `text` as a document that sets v: TOML if it parses, otherwise a bare string (a word or a path; `for_text`: a number, too).
Result<toml::table> parse_override_value(std::string_view whole, std::string_view text, const std::string& flag,
                                         bool for_text) {
  auto document = parse_document(fmt::format("v = {}\n", text), flag);
  const bool number = document && document->get("v")->is_value() && !document->get("v")->is_string();
  if (document && document->size() == 1 && !(for_text && number)) return document;
  const bool meant_as_toml = !text.empty() && std::string_view("[{\"'").find(text.front()) != std::string_view::npos;
  if (!meant_as_toml) {
    document = parse_document(fmt::format("v = {}\n", to_toml(std::string(text))), flag);
    if (document) return document;
  }
  return refuse(flag, fmt::format("{}: the value is not valid TOML", whole));
}

/// Parses one "key=value" into a setting whose node lives in `documents`.
Result<Setting> parse_override(const Schema& schema, const std::string& text, const std::string& flag,
                               std::vector<toml::table>& documents) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return refuse(flag, fmt::format("\"{}\" is not key=value", text));
  const std::string key{trimmed(std::string_view(text).substr(0, equals))};
  if (is_section(schema, key)) return refuse(flag, fmt::format("\"{}\" is a section: set one of its keys", key));
  if (!is_key(schema, key)) return refuse(flag, schema.unknown(key));
  const bool for_text = std::ranges::any_of(schema.options(), [&](const Option& option) {
    return option.key == key && std::holds_alternative<std::string>(option.default_value);
  });
  auto document = parse_override_value(text, trimmed(std::string_view(text).substr(equals + 1)), flag, for_text);
  if (!document) return tl::unexpected(std::move(document.error()));
  documents.push_back(std::move(*document));
  return Setting{key, documents.back().get("v"), flag};
}

/// A setting for strategies that are not chosen must be valid for at least one of them.
Result<void> check_unused(const Schema& schema, const Setting& setting) {
  Result<void> first_failure;
  for (const Option& option : schema.options()) {
    if (option.key != setting.key) continue;
    auto value = checked(option, setting);
    if (value) return {};
    if (first_failure) first_failure = tl::unexpected(std::move(value.error()));
  }
  return first_failure;
}

/// A Structure's default in the form that convert() writes, so that a saved config reads back equal.
Value normalised(const Value& value) {
  const auto* structure = std::get_if<Structure>(&value);
  if (structure == nullptr || structure->json.empty()) return value;
  return Structure{nlohmann::json::parse(structure->json).dump()};
}

/// The lines of a list's tables, each under "key[index]". `origin` is null for an override: it has no lines.
void note_elements(const Setting& setting, const std::string* origin,
                   std::map<std::string, std::string, std::less<>>& origins) {
  const auto* list = setting.node->as_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto name = fmt::format("{}[{}]", setting.key, i);
    origins[name] = origin == nullptr ? setting.where : at(*origin, list->get(i)->source());
  }
}

Error missing(const Option& option, const std::string& origin) {
  const auto dot = option.key.rfind('.');
  const std::string section =
      dot == std::string::npos ? "" : fmt::format(" in section [{}]", option.key.substr(0, dot));
  std::string help = option.help;
  if (!option.rule.names.empty()) help += fmt::format("{}{}", help.empty() ? "" : ": ", option.rule.text);
  if (!help.empty()) help = fmt::format(" ({})", help);
  return {Errc::config, fmt::format("{}: missing key \"{}\"{}{}", origin, option.key.substr(dot + 1), section, help)};
}

}  // namespace

Result<Config> Config::load(const Schema& schema, const std::string& path, const std::vector<std::string>& overrides) {
  return read_text("config", path).and_then([&](const std::string& text) {
    return parse(schema, text, path, overrides);
  });
}

Result<Config> Config::parse(const Schema& schema, std::string_view text, const std::string& origin,
                             const std::vector<std::string>& overrides, const std::string& flag) {
  auto document = parse_document(text, origin);
  if (!document) return tl::unexpected(std::move(document.error()));
  std::vector<Setting> settings;
  if (auto result = collect(schema, *document, "", origin, settings); !result)
    return tl::unexpected(std::move(result.error()));
  if (auto once = check_once(settings); !once) return tl::unexpected(std::move(once.error()));
  std::vector<toml::table> documents;
  documents.reserve(overrides.size());  // settings point into them
  for (const std::string& override_text : overrides) {
    auto setting = parse_override(schema, override_text, flag, documents);
    if (!setting) return tl::unexpected(std::move(setting.error()));
    settings.push_back(std::move(*setting));
  }

  std::map<std::string, const Setting*, std::less<>> last;  // later settings win
  for (const Setting& setting : settings) last[setting.key] = &setting;

  std::string scope;
  if (const Option* option = schema.find(kScopeKey, "")) {
    scope = std::get<std::string>(option->default_value);
    if (const auto it = last.find(kScopeKey); it != last.end()) {
      auto chosen = checked(*option, *it->second);
      if (!chosen) return tl::unexpected(std::move(chosen.error()));
      scope = std::get<std::string>(*chosen);
    }
  }

  Config config;
  for (const Setting& setting :
       settings) {  // also settings that a later one replaces: a wrong value is an error anywhere
    const Option* option = schema.find(setting.key, scope);
    if (option == nullptr) {
      if (auto result = check_unused(schema, setting); !result) return tl::unexpected(std::move(result.error()));
      if (std::find(config.unused_.begin(), config.unused_.end(), setting.key) == config.unused_.end())
        config.unused_.push_back(setting.key);
      continue;
    }
    auto value = checked(*option, setting);
    if (!value) return tl::unexpected(std::move(value.error()));
    config.values_[setting.key] = std::move(*value);
    config.origins_[setting.key] = setting.where;
    note_elements(setting, setting.where == flag ? nullptr : &origin, config.origins_);
  }
  for (const Option& option : schema.options()) {
    if (&option != schema.find(option.key, scope)) continue;  // a row of another scope
    config.order_.push_back(option.key);
    if (config.values_.contains(option.key)) continue;
    const bool automatic = option.rule.automatic && option.default_value == Value{kAutomatic};
    if (!automatic && option.rule.allows && !option.rule.allows(option.default_value))
      return tl::unexpected(missing(option, origin));
    config.values_[option.key] = normalised(option.default_value);
    config.origins_[option.key] = "default";
  }
  for (const auto& [key, derivation] : schema.derivations()) {
    if (!config.values_.contains(key)) continue;
    auto derived = derivation(config);
    if (!derived) continue;
    config.values_[key] = std::move(derived->value);
    config.reasons_.emplace_back(key, std::move(derived->why));
  }
  return config;
}

const Value& Config::value(std::string_view key) const {
  const auto it = values_.find(key);
  if (it == values_.end()) throw std::out_of_range(fmt::format("no option {} in this configuration", key));
  return it->second;
}

std::string Config::where(std::string_view key) const {
  auto it = origins_.find(key);
  if (it == origins_.end()) it = origins_.find(key.substr(0, key.find('[')));
  if (it == origins_.end()) throw std::out_of_range(fmt::format("no option {} in this configuration", key));
  return it->second;
}

}  // namespace troupe::core
