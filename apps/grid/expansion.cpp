#include "apps/grid/expansion.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/grid/toml_text.hpp"
#include "nn/hash.hpp"

namespace troupe::grid {
namespace {

/// One factor of the product: each row is one set of choices.
using Rows = std::vector<std::vector<Choice>>;

Rows rows_of(const std::vector<Axis>& together) {
  Rows rows(together.front().values.size());
  for (const auto& axis : together)
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back({axis.key, axis.values[i], axis.where});
  return rows;
}

bool has(const std::vector<Axis>& axes, std::string_view key) {
  return std::ranges::any_of(axes, [&](const Axis& axis) { return axis.key == key; });
}

const Only* block_of(const GridFile& file, const std::string& strategy) {
  const auto block = std::ranges::find(file.only, strategy, &Only::strategy);
  return block == file.only.end() ? nullptr : &*block;
}

/// The factors for the runs of one strategy, without the factor that sets the strategy.
std::vector<Rows> factors(const GridFile& file, const std::string& strategy) {
  const Only* block = block_of(file, strategy);
  std::vector<Rows> result;
  for (const auto& axis : file.axes)
    if (axis.key != kStrategyKey && (block == nullptr || !has(block->axes, axis.key)))
      result.push_back(rows_of({axis}));
  for (const auto& group : file.zips)
    if (!has(group, kStrategyKey)) result.push_back(rows_of(group));
  if (block != nullptr)
    for (const auto& axis : block->axes) result.push_back(rows_of({axis}));
  if (!file.seeds.empty()) {
    Rows seeds;
    for (const auto seed : file.seeds) seeds.push_back({{std::string(kSeedKey), fmt::format("{}", seed), file.path}});
    result.push_back(std::move(seeds));
  }
  return result;
}

/// The choices of the strategy: the axis or group with strategy.name; one empty row when the bases set it.
Rows strategy_rows(const GridFile& file) {
  for (const auto& axis : file.axes)
    if (axis.key == kStrategyKey) return rows_of({axis});
  for (const auto& group : file.zips)
    if (has(group, kStrategyKey)) return rows_of(group);
  return {{}};
}

bool excluded(const Combination& combination, const GridFile& file) {
  const auto matches = [&](const Axis& rule) {
    std::optional<std::string> value;
    if (rule.key == kBaseKey) value = core::to_toml(core::Value{file.bases[combination.base]});
    if (const auto* choice = combination.find(rule.key)) value = choice->value;
    return value && std::ranges::find(rule.values, *value) != rule.values.end();
  };
  return std::ranges::any_of(file.excludes,
                             [&](const Exclude& exclude) { return std::ranges::all_of(exclude.keys, matches); });
}

void multiply(Combination& so_far, const std::vector<Rows>& factors, std::size_t next, const GridFile& file,
              std::vector<Combination>& all) {
  if (next == factors.size()) {
    if (!excluded(so_far, file)) all.push_back(so_far);
    return;
  }
  for (const auto& row : factors[next]) {
    so_far.choices.insert(so_far.choices.end(), row.begin(), row.end());
    multiply(so_far, factors, next + 1, file, all);
    so_far.choices.resize(so_far.choices.size() - row.size());
  }
}

/// Text for a file name: letters, digits and . + - stay; each other character becomes a hyphen.
std::string file_text(const std::string& toml_value) {
  std::string text;
  for (const char c : plain_text(toml_value)) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '+' || c == '-';
    if (c == ' ' || c == '[' || c == ']' || c == '"') continue;
    text += good ? c : '-';
  }
  return text;
}

std::string last_part(std::string_view key) { return std::string(key.substr(key.rfind('.') + 1)); }

std::string base_name(const GridFile& file, std::size_t base) {
  return std::filesystem::path(file.bases[base]).stem().string();
}

}  // namespace

const Choice* Combination::find(std::string_view key) const noexcept {
  const auto found = std::ranges::find(choices, key, &Choice::key);
  return found == choices.end() ? nullptr : &*found;
}

std::vector<Combination> expand(const GridFile& file, std::span<const std::string> strategies) {
  std::vector<Combination> all;
  for (std::size_t base = 0; base < file.bases.size(); ++base) {
    for (const auto& row : strategy_rows(file)) {
      Combination so_far{base, row};
      const auto* chosen = so_far.find(kStrategyKey);
      multiply(so_far, factors(file, chosen != nullptr ? plain_text(chosen->value) : strategies[base]), 0, file, all);
    }
  }
  return all;
}

std::vector<std::string> varied_keys(std::span<const Combination> combinations) {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> present;
  std::set<std::size_t> bases;
  for (const auto& combination : combinations) {
    bases.insert(combination.base);
    for (const auto& choice : combination.choices) {
      if (values[choice.key].empty()) order.push_back(choice.key);
      values[choice.key].insert(choice.value);
      ++present[choice.key];
    }
  }
  std::erase_if(order,
                [&](const std::string& key) { return values[key].size() == 1 && present[key] == combinations.size(); });
  // Seeds are last, independent of where they first appear.
  std::ranges::stable_partition(order, [](const std::string& key) { return key != kSeedKey; });
  if (bases.size() > 1) order.insert(order.begin(), std::string(kBaseKey));
  return order;
}

std::string short_name(std::string_view key, std::span<const std::string> keys) {
  if (key == kStrategyKey) return "strategy";
  if (key == kSeedKey) return "seed";
  const auto last = last_part(key);
  const auto alike = std::ranges::count_if(keys, [&](const std::string& other) { return last_part(other) == last; });
  return alike > 1 ? std::string(key) : last;
}

std::string name_of(const Combination& combination, std::span<const std::string> varied, const GridFile& file,
                    const std::string& otherwise) {
  constexpr std::size_t kLongest = 80;
  std::vector<std::string> parts;
  std::string exact;  // distinguishes texts that file_text() made equal
  for (const auto& key : varied) {
    if (key == kBaseKey) parts.push_back(base_name(file, combination.base));
    const auto* choice = combination.find(key);
    if (choice == nullptr) continue;
    const auto value = file_text(choice->value);
    parts.push_back(key == kStrategyKey ? value : fmt::format("{}={}", short_name(key, varied), value));
    exact += choice->value + "\n";
  }
  auto name = parts.empty() ? otherwise : fmt::format("{}", fmt::join(parts, "_"));
  if (name.size() > kLongest || name.front() == '.') {
    exact += base_name(file, combination.base);
    const auto hash = nn::hash64(std::as_bytes(std::span(exact)));
    name = fmt::format("{}~{:08x}", name.substr(0, kLongest - 9), hash & 0xffffffffu);
    if (name.front() == '.') name.front() = '_';
  }
  return name;
}

std::string describe(const Combination& combination, const GridFile& file) {
  std::vector<std::string> parts;
  if (file.bases.size() > 1) parts.push_back(fmt::format("base = \"{}\"", file.bases[combination.base]));
  for (const auto& choice : combination.choices) parts.push_back(fmt::format("{} = {}", choice.key, choice.value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace troupe::grid
