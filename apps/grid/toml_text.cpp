#include "apps/grid/toml_text.hpp"

#include <cmath>

#include <fmt/format.h>

#include "core/config/config.hpp"

namespace troupe::grid {

tl::expected<std::string, std::string> toml_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return core::to_toml(core::Value{text->get()});
  if (const auto* boolean = node.as_boolean()) return core::to_toml(core::Value{boolean->get()});
  if (const auto* integer = node.as_integer()) return core::to_toml(core::Value{integer->get()});
  if (const auto* number = node.as_floating_point(); number != nullptr && std::isfinite(number->get()))
    return core::to_toml(core::Value{number->get()});
  std::string joined;
  const auto add = [&](const std::string& prefix, const toml::node& element) -> tl::expected<void, std::string> {
    auto text = toml_text(element);
    if (!text) return tl::unexpected(std::move(text.error()));
    joined += (joined.empty() ? "" : ", ") + prefix + *text;
    return {};
  };
  if (const auto* list = node.as_array()) {
    for (const auto& element : *list)
      if (auto added = add("", element); !added) return tl::unexpected(std::move(added.error()));
    return fmt::format("[{}]", joined);
  }
  if (const auto* table = node.as_table()) {
    for (const auto& [key, element] : *table)
      if (auto added = add(core::to_toml(core::Value{std::string(key.str())}) + " = ", element); !added)
        return tl::unexpected(std::move(added.error()));
    return fmt::format("{{{}}}", joined);
  }
  return tl::unexpected<std::string>("a value must not be a date, a time, NaN or infinity");
}

std::string plain_text(const std::string& toml_value) {
  if (toml_value.size() < 2 || toml_value.front() != '"') return toml_value;
  try {
    const auto document = toml::parse("v = " + toml_value);
    if (const auto text = document["v"].value<std::string>()) return *text;
  } catch (const toml::parse_error&) {  // returned unchanged
  }
  return toml_value;
}

}  // namespace troupe::grid
