#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/config/config.hpp"
#include "core/text/layout.hpp"
#include "core/text/nearest.hpp"

namespace troupe::core {
namespace {

std::string_view section_of(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : key.substr(0, dot);
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// Whether the help begins with the words of `name`: "learning_rate", and "learning rate of the local step".
bool is_described_by(std::string_view help, std::string_view name) {
  const auto said = words_of(help), asked = words_of(name);
  return !asked.empty() && said.size() >= asked.size() && std::equal(asked.begin(), asked.end(), said.begin());
}

std::optional<double> distance_to(const Option& option, std::string_view wrong) {
  // A correct name in the wrong section, or in none, is as likely as a misspelt name.
  constexpr double kWrongSection = 2;
  constexpr double kDescribed = 1.4;
  const auto name = last_part(wrong);
  auto distance = distance_if_near(name, last_part(option.key));
  if (is_described_by(option.help, name)) distance = std::min(distance.value_or(kDescribed), kDescribed);
  if (!distance) return std::nullopt;
  const auto section = distance_if_near(section_of(wrong), section_of(option.key));
  return *distance + std::min(section.value_or(kWrongSection), kWrongSection);
}

std::string help_value(const Option& option) {
  if (const auto* structure = std::get_if<Structure>(&option.default_value);
      structure != nullptr && structure->json.empty())
    return "(none)";
  if (option.rule.automatic && option.default_value == Value{kAutomatic}) return to_toml(std::string("auto"));
  const bool required = option.rule.allows && !option.rule.allows(option.default_value);
  return required ? "(required)" : to_toml(option.default_value);
}

std::string help_key(const Option& option) { return fmt::format("{} = {}", last_part(option.key), help_value(option)); }

bool is_about(const Option& option, std::string_view about) {
  return about.empty() || option.key == about || option.key.starts_with(std::string(about) + ".");
}

}  // namespace

void Schema::add_option(Option option) {
  for (const Option& other : options_)
    if (other.key == option.key && other.scope == option.scope)
      throw std::logic_error(fmt::format("option {} is in two tables of scope \"{}\"", option.key, option.scope));
  options_.push_back(std::move(option));
}

const Option* Schema::find(std::string_view key, std::string_view scope) const noexcept {
  const Option* general = nullptr;
  for (const Option& option : options_) {
    if (option.key != key) continue;
    if (option.scope == scope) return &option;
    if (option.scope.empty()) general = &option;
  }
  return general;
}

void Schema::derive(std::string key, Derivation derivation) {
  derivations_.emplace_back(std::move(key), std::move(derivation));
}

std::string Schema::nearest(std::string_view key) const {
  const Option* best = nullptr;
  double least = 0;
  for (const Option& option : options_) {
    const auto distance = distance_to(option, key);
    if (!distance || (best != nullptr && *distance >= least)) continue;
    best = &option;
    least = *distance;
  }
  return best == nullptr ? std::string{} : best->key;
}

std::string Schema::nearest_section(std::string_view section) const { return nearest_word(section, sections()); }

std::string Schema::unknown(std::string_view key) const {
  const auto message = fmt::format("unknown key \"{}\"", key);
  if (const auto near = nearest(key); !near.empty()) return message + fmt::format(" (nearest: \"{}\")", near);
  if (const auto keys = keys_of(section_of(key)); !keys.empty())
    return message + fmt::format(": [{}] has {}", section_of(key), fmt::join(keys, ", "));
  return message + fmt::format(": a key is SECTION.KEY, in [{}]", fmt::join(sections(), "], ["));
}

std::vector<std::string> Schema::sections() const {
  std::vector<std::string> names;
  for (const Option& option : options_)
    if (const auto name = section_of(option.key);
        !name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.emplace_back(name);
  return names;
}

std::vector<std::string> Schema::keys_of(std::string_view section) const {
  std::vector<std::string> names;
  for (const Option& option : options_)
    if (const auto name = last_part(option.key);
        section_of(option.key) == section && std::find(names.begin(), names.end(), name) == names.end())
      names.emplace_back(name);
  return names;
}

std::string Schema::help(std::size_t columns, std::string_view about) const {
  // A longer key stands on a line of its own, so that little room is lost for the others.
  constexpr std::size_t kWidestKey = 26;
  std::size_t at = 0;
  for (const Option& option : options_)
    if (const auto width = text_width(help_key(option)); is_about(option, about) && width <= kWidestKey)
      at = std::max(at, width + 4);
  at = std::max<std::size_t>(at, 8);
  std::string text;
  for (const std::string& section : sections()) {
    std::string_view scope;
    bool begun = false;
    for (const Option& option : options_) {
      if (section_of(option.key) != section || !is_about(option, about)) continue;
      if (!std::exchange(begun, true)) text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
      if (option.scope != scope) {
        scope = option.scope;
        text += scope.empty() ? "  always:\n" : fmt::format("  with strategy.name = \"{}\":\n", scope);
      }
      const auto rule = option.rule.text.empty() ? "" : fmt::format(" [{}]", option.rule.text);
      text += list_row(help_key(option), option.help + rule, at, columns);
    }
  }
  return text;
}

}  // namespace troupe::core
