#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "core/config.hpp"

namespace troupe::core {
namespace {

std::string_view section_of(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : key.substr(0, dot);
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// Edit distance that counts a swap of neighbours as one edit (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;  // two rows back, previous, current
  for (auto& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[1][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& [before, previous, current] = rows;
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::rotate(rows.begin(), rows.begin() + 1, rows.end());
  }
  return rows[1][b.size()];
}

/// A correct name in the wrong section, or in none, is as likely as a misspelt name.
std::size_t key_distance(std::string_view wrong, std::string_view known) {
  constexpr std::size_t kWrongSection = 2;
  return std::min(distance(wrong, known), distance(last_part(wrong), last_part(known)) + kWrongSection);
}

/// Terminal columns: counts code points, because rules contain "≥".
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string text, std::size_t columns) {
  const std::size_t used = width(text);
  return used < columns ? text.append(columns - used, ' ') : text;
}

std::string help_value(const Option& option) {
  if (const auto* structure = std::get_if<Structure>(&option.default_value);
      structure != nullptr && structure->json.empty())
    return "(none)";
  if (option.rule.automatic && option.default_value == Value{kAutomatic}) return to_toml(std::string("auto"));
  const bool required = option.rule.allows && !option.rule.allows(option.default_value);
  return required ? "(required)" : to_toml(option.default_value);
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
  std::size_t least = 0;
  for (const Option& option : options_) {
    const std::size_t d = key_distance(key, option.key);
    if (best == nullptr || d < least) {
      best = &option;
      least = d;
    }
  }
  return best == nullptr ? std::string{} : best->key;
}

std::string Schema::nearest_section(std::string_view section) const {
  std::string_view best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const Option& option : options_) {
    const std::string_view known = section_of(option.key);
    const std::size_t d = distance(section, known);
    if (!known.empty() && d < least) {
      best = known;
      least = d;
    }
  }
  return std::string(best);
}

std::string Schema::help() const {
  std::vector<std::string_view> sections;
  std::size_t key_columns = 0;
  std::size_t rule_columns = 0;
  for (const Option& option : options_) {
    if (std::find(sections.begin(), sections.end(), section_of(option.key)) == sections.end())
      sections.push_back(section_of(option.key));
    key_columns = std::max(key_columns, width(last_part(option.key)) + width(help_value(option)) + 3);
    rule_columns = std::max(rule_columns, std::min<std::size_t>(width(option.rule.text), 24));
  }
  std::string text;
  for (const std::string_view section : sections) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    std::string_view scope;
    for (const Option& option : options_) {
      if (section_of(option.key) != section) continue;
      if (option.scope != scope) {
        scope = option.scope;
        text += scope.empty() ? "  always:\n" : fmt::format("  with strategy.name = \"{}\":\n", scope);
      }
      text += fmt::format("  {}  {}  {}\n",
                          padded(fmt::format("{} = {}", last_part(option.key), help_value(option)), key_columns),
                          padded(option.rule.text, rule_columns), option.help);
    }
  }
  return text;
}

}  // namespace troupe::core
