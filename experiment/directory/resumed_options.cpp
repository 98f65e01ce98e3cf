#include "experiment/directory/resumed_options.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/settings.hpp"

namespace troupe::experiment {
namespace {

std::string strategy_of(const core::Config& config) { return std::get<std::string>(config.value("strategy.name")); }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The last value given to strategy.name, without quotes; empty: none.
std::string strategy_of(const std::vector<std::string>& overrides) {
  std::string name;
  for (const std::string_view text : overrides) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || trimmed(text.substr(0, equals)) != "strategy.name") continue;
    auto value = trimmed(text.substr(equals + 1));
    if (value.size() > 1 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    name = value;
  }
  return name;
}

/// Calls `each(option, before)` with every option of strategy `name` that strategy `before` has, too.
void for_each_shared(const std::string& name, const std::string& before, const auto& each) {
  for (const auto& option : schema().options())
    if (const auto* other = schema().find(option.key, before);
        option.scope == name && other != nullptr && other->scope == before)
      each(option, *other);
}

}  // namespace

std::vector<std::string> defaults_of_strategy(const core::Config& recorded, const std::vector<std::string>& overrides) {
  std::vector<std::string> defaults;
  const auto before = strategy_of(recorded), now = strategy_of(overrides);
  if (now.empty() || now == before) return defaults;
  for_each_shared(now, before, [&](const core::Option& option, const core::Option& other) {
    if (recorded.value(option.key) == other.default_value && option.default_value != other.default_value)
      defaults.push_back(fmt::format("{}={}", option.key, core::to_toml(option.default_value)));
  });
  return defaults;
}

std::string other_strategy_note(const core::Config& now, const core::Config& recorded) {
  const auto name = strategy_of(now), before = strategy_of(recorded);
  if (name == before) return {};
  std::vector<std::string> kept, changed;
  for_each_shared(name, before, [&](const core::Option& option, const core::Option& other) {
    const auto &value = now.value(option.key), &earlier = recorded.value(option.key);
    if (value != earlier && value == option.default_value)
      changed.push_back(fmt::format("{} {} → {}", option.key, core::to_toml(earlier), core::to_toml(value)));
    if (value == earlier && value != other.default_value && now.where(option.key) != "--set")
      kept.push_back(fmt::format("{} = {}", option.key, core::to_toml(value)));
  });
  if (kept.empty() && changed.empty()) return {};
  auto note = fmt::format("strategy.name = \"{}\", before \"{}\": ", name, before);
  if (!kept.empty())
    note += fmt::format("{} {}; ", fmt::join(kept, ", "),
                        kept.size() == 1 ? "stays as it was set" : "stay as they were set");
  note += fmt::format("{} are {}'s defaults", kept.empty() ? "options that are not set" : "all other options", name);
  if (!changed.empty()) note += fmt::format(" ({})", fmt::join(changed, ", "));
  return note;
}

}  // namespace troupe::experiment
