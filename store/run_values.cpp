#include "store/run_values.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <type_traits>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "nn/hash.hpp"

namespace troupe::store {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of_toml(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* list = node.as_array()) {
    auto json = OrderedJson::array();
    for (const auto& element : *list) json.push_back(json_of_toml(element));
    return json;
  }
  auto json = OrderedJson::object();
  if (const auto* table = node.as_table())
    for (const auto& [key, element] : *table) json[std::string(key.str())] = json_of_toml(element);
  return json;
}

Cell cell_of(const OrderedJson& json) {
  if (json.is_array() && json.size() == 1 && json.front().is_primitive()) return cell_of(json.front());
  if (json.is_boolean()) return std::string(json.get<bool>() ? "true" : "false");
  if (json.is_number_float()) {
    const double value = json.get<double>();
    return std::isfinite(value) ? Cell(value) : Cell(fmt::format("{}", value));
  }
  if (json.is_number()) return json.get<std::int64_t>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_null()) return {};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void flatten_into(Values& values, const std::string& prefix, const toml::table& table) {
  for (const auto& [key, node] : table) {
    const auto name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table())
      flatten_into(values, name + ".", *inner);
    else
      values.emplace_back(name, cell_of(json_of_toml(node)));
  }
}

bool has_list(const OrderedJson& object) {
  return std::ranges::any_of(object, [](const OrderedJson& value) { return value.is_array(); });
}

void flatten_into(Values& values, const std::string& prefix, const OrderedJson& object) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_array() || value.is_null() || (value.is_object() && has_list(value))) continue;
    if (value.is_object())
      flatten_into(values, prefix + key + ".", value);
    else
      values.emplace_back(prefix + key, cell_of(value));
  }
}

constexpr std::string_view kTime = "dddddddd-dddddd-";

bool has_time(std::string_view name) {
  if (name.size() <= kTime.size()) return false;
  for (std::size_t i = 0; i < kTime.size(); ++i)
    if (kTime[i] == 'd' ? std::isdigit(static_cast<unsigned char>(name[i])) == 0 : name[i] != kTime[i]) return false;
  return true;
}

}  // namespace

core::Result<Values> config_values(std::string_view toml, const std::string& path) {
  try {
    Values values;
    flatten_into(values, "", toml::parse(toml));
    return values;
  } catch (const toml::parse_error& error) {
    return core::fail(core::Errc::config,
                      fmt::format("{}:{}: {}", path, error.source().begin.line, std::string(error.description())));
  }
}

const Cell* find(const Values& values, std::string_view key) {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, Cell>::first);
  return found == values.end() ? nullptr : &found->second;
}

std::string text_of(const Cell& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  return {};
}

OrderedJson json_of(const Cell& value) {
  return std::visit(
      [](const auto& typed) -> OrderedJson {
        if constexpr (std::is_same_v<std::decay_t<decltype(typed)>, std::monostate>)
          return nullptr;
        else
          return typed;
      },
      value);
}

std::string identity_of(const Values& config) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : config)
    if (key != "run.name" && key != "run.dir" && key != "run.seed")
      lines.push_back(fmt::format("{}={}={}\n", key, value.index(), text_of(value)));
  std::ranges::sort(lines);
  nn::Hash128 hash;
  for (const auto& line : lines) hash.add(std::as_bytes(std::span(line)));
  return hash.hex();
}

Values summary_values(const OrderedJson& summary) {
  Values values;
  if (summary.is_object()) flatten_into(values, "", summary);
  return values;
}

std::string started_of(std::string_view name) {
  if (!has_time(name)) return {};
  return fmt::format("{}-{}-{} {}:{}:{}", name.substr(0, 4), name.substr(4, 2), name.substr(6, 2), name.substr(9, 2),
                     name.substr(11, 2), name.substr(13, 2));
}

std::string name_of(std::string_view name) { return std::string(has_time(name) ? name.substr(kTime.size()) : name); }

std::string shown(const Cell& value) {
  constexpr double kWhole = 1000;  // from a thousand on decimals are noise
  if (const auto* number = std::get_if<double>(&value)) {
    if (std::abs(*number) >= kWhole && std::abs(*number) < 1e15) return fmt::format("{:.0f}", *number);
    return fmt::format("{:.4g}", *number);
  }
  const auto text = text_of(value);
  return text.empty() ? "-" : text;
}

}  // namespace troupe::store
