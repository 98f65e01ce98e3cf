#include "store/query/keys.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/nearest.hpp"
#include "store/schema.hpp"

namespace troupe::store {
namespace {

using Where = KnownKey::Where;

const RunColumn* column_called(std::string_view name) {
  if (name == "run.name") name = "name";
  if (name == "run.seed") name = "seed";
  const auto found = std::ranges::find_if(kRunColumns, [&](const RunColumn& column) {
    return column.name == name || (column.result == name && !name.empty());
  });
  return found == kRunColumns.end() ? nullptr : found;
}

/// Where the values of a key in the table `keys` are.
KnownKey stored_key(Database& database, std::int64_t id, const std::string& name) {
  Statement option(database, "SELECT 1 FROM options WHERE key = ? LIMIT 1");
  const bool is_option = option.with(id).next();
  return {is_option ? Where::option : Where::result, name, false, id};
}

core::Result<KnownKey> unknown_key(Database& database, const std::string& key, const std::string& what) {
  std::vector<std::string> names{"run", "tag"};
  for (const auto& column : kRunColumns) names.emplace_back(column.name);
  for (Statement all(database, "SELECT name FROM keys"); all.next();) names.push_back(all.text(0));
  return core::fail(core::Errc::usage, fmt::format("{}no run has the key \"{}\"{}", what, key,
                                                   core::nearest_hint(key, names, core::Quotes::no)));
}

std::optional<Cell> number_of(const std::string& text) {
  const auto* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc() && read.ptr == end && std::isfinite(number))
    return number;  // "inf" and "nan" are texts
  return std::nullopt;
}

std::string_view sql(Comparison comparison) {
  switch (comparison) {
    case Comparison::equal: return "=";
    case Comparison::unequal: return "<>";
    case Comparison::less: return "<";
    case Comparison::less_or_equal: return "<=";
    case Comparison::greater: return ">";
    case Comparison::greater_or_equal: return ">=";
    case Comparison::contains: return "LIKE";
  }
  return "=";
}

std::string pattern_of(const std::string& text) {
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "%";
}

/// `value` is an SQL expression. Numbers are less than texts in SQLite: the second half of a comparison keeps to one kind.
std::string comparison_of(const Condition& condition, const std::string& value, const std::optional<Cell>& number,
                          std::vector<Cell>& parameters) {
  const auto comparison = condition.comparison;
  if (comparison == Comparison::contains) {
    parameters.emplace_back(pattern_of(condition.value));
    return value + " LIKE ? ESCAPE '\\'";
  }
  if (!number) {
    parameters.emplace_back(condition.value);
    const bool downwards = comparison == Comparison::less || comparison == Comparison::less_or_equal;
    return fmt::format("{} {} ?{}", value, sql(comparison), downwards ? fmt::format(" AND {} >= ''", value) : "");
  }
  parameters.push_back(*number);
  const bool upwards = comparison == Comparison::greater || comparison == Comparison::greater_or_equal;
  return fmt::format("{} {} ?{}", value, sql(comparison), upwards ? fmt::format(" AND {} < ''", value) : "");
}

core::Result<std::string> column_condition(const Condition& condition, const KnownKey& key, const std::string& place,
                                           std::vector<Cell>& parameters) {
  const auto value = expression_of(key);
  const auto number = number_of(condition.value);
  if (key.number && condition.comparison == Comparison::contains)
    return core::fail(core::Errc::usage, fmt::format("{}~ is for texts, and {} is a number", place, key.name));
  if (key.number && !number)
    return core::fail(core::Errc::usage,
                      fmt::format("{}{} is a number, and \"{}\" is none", place, key.name, condition.value));
  if (key.name == "started" && condition.comparison != Comparison::contains) {
    auto time = condition.value;  // "2026-01-02" compares days
    if (time.size() > 10 && time[10] == 'T') time[10] = ' ';
    parameters.emplace_back(time);
    return fmt::format("substr({}, 1, {}) {} ?", value, time.size(), sql(condition.comparison));
  }
  return comparison_of(condition, value, key.number ? number : std::nullopt, parameters);
}

/// The index of the key's values has all of this; a configuration is that of one run or of few.
std::string stored_selection(const Condition& condition, const KnownKey& key, std::vector<Cell>& parameters) {
  const bool is_option = key.where == Where::option;
  const auto holds = comparison_of(condition, is_option ? "o.value" : "value", number_of(condition.value), parameters);
  if (!is_option) return fmt::format("SELECT run FROM results WHERE key = {} AND {}", key.id, holds);
  return fmt::format("SELECT r.id FROM options o CROSS JOIN runs r ON r.config = o.config WHERE o.key = {} AND {}",
                     key.id, holds);
}

core::Result<std::string> tag_condition(const Condition& condition, const std::string& place,
                                        std::vector<Cell>& parameters) {
  auto asked = condition;
  const bool without = condition.comparison == Comparison::unequal;
  if (without) asked.comparison = Comparison::equal;
  if (asked.comparison != Comparison::equal && asked.comparison != Comparison::contains)
    return core::fail(core::Errc::usage, fmt::format("{}a tag has = != and ~ only", place));
  return fmt::format("r.id {}IN (SELECT run FROM tags WHERE {})", without ? "NOT " : "",
                     comparison_of(asked, "tag", std::nullopt, parameters));
}

}  // namespace

core::Result<KnownKey> resolve_key(Database& database, const std::string& key, const std::string& what) {
  if (key == "run") return KnownKey{Where::run, "run"};
  if (key == "tag" || key == "tags") return KnownKey{Where::tags, "tags"};
  if (const auto* column = column_called(key))
    return KnownKey{Where::column, std::string(column->name), column->number};
  Statement exact(database, "SELECT id FROM keys WHERE name = ?");
  if (exact.with(key).next()) return stored_key(database, exact.integer(0), key);
  std::vector<std::pair<std::int64_t, std::string>> ending;
  for (Statement all(database, "SELECT id, name FROM keys ORDER BY name"); all.next();)
    if (all.text(1).ends_with("." + key)) ending.emplace_back(all.integer(0), all.text(1));
  if (auto checked = database.check(); !checked) return tl::unexpected(checked.error());
  if (ending.empty()) return unknown_key(database, key, what);
  if (ending.size() == 1) return stored_key(database, ending.front().first, ending.front().second);
  std::vector<std::string> names;
  for (const auto& [id, name] : ending) names.push_back(name);
  return core::fail(core::Errc::usage,
                    fmt::format("{}\"{}\" may be {}: write it whole", what, key, fmt::join(names, " or ")));
}

std::string expression_of(const KnownKey& key) {
  switch (key.where) {
    case Where::run: return "(SELECT path FROM directories WHERE id = r.id)";
    case Where::tags:
      return "(SELECT group_concat(tag, ',') FROM (SELECT tag FROM tags WHERE run = r.id ORDER BY tag))";
    case Where::column: return "r." + key.name;
    case Where::option: return fmt::format("(SELECT value FROM options WHERE config = r.config AND key = {})", key.id);
    case Where::result: return fmt::format("(SELECT value FROM results WHERE run = r.id AND key = {})", key.id);
  }
  return "NULL";
}

std::string values_of(const KnownKey& key) {
  switch (key.where) {
    case Where::run: return "SELECT id, path FROM directories";
    case Where::option:
      return fmt::format(
          "SELECT r.id, o.value FROM options o CROSS JOIN runs r ON r.config = o.config WHERE o.key = {}", key.id);
    case Where::result: return fmt::format("SELECT run, value FROM results WHERE key = {}", key.id);
    default: return fmt::format("SELECT r.id, {} FROM runs r", expression_of(key));
  }
}

core::Result<Selection> selection_of(Database& database, const Condition& condition) {
  const auto place = fmt::format("filter, column {}: ", condition.column);
  const auto key = resolve_key(database, condition.key, place);
  if (!key) return tl::unexpected(key.error());
  Selection selection;
  if (key->where == Where::option || key->where == Where::result) {
    selection.statement = stored_selection(condition, *key, selection.parameters);
    return selection;
  }
  const auto holds = key->where == Where::tags ? tag_condition(condition, place, selection.parameters)
                                               : column_condition(condition, *key, place, selection.parameters);
  if (!holds) return tl::unexpected(holds.error());
  selection.statement = fmt::format("SELECT r.id FROM runs r WHERE ({})", *holds);
  selection.scans = key->name != "accuracy";  // which has an index
  return selection;
}

}  // namespace troupe::store
