/// One table of options drives TOML files, --set, --help and the saved resolved config.
///
/// A module describes its options once, beside the plain struct that holds them; defaults are the struct's own initialisers:
///
///     struct EasgdConfig { double alpha = 0.5; std::int64_t tau = 10; };
///     const Table<EasgdConfig>& easgd_table() {
///       static const Table<EasgdConfig> table{"strategy", {
///           {"alpha", &EasgdConfig::alpha, between(0, 1), "moving rate of worker and centre"},
///           {"tau", &EasgdConfig::tau, at_least(1), "local steps between exchanges"}}};
///       return table;
///     }
///
/// A program's Schema is the union of its tables. Config is what one file plus overrides say, checked against the Schema.
/// Every error is Errc::config and names file:line (or "--set"), the value, the rule, and the nearest known key.
/// Thread rule: Tables and Schemas are built once and then read; a Config is a value.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace troupe::core {

/// What a value may be. Lists accept a scalar as a list of one (`data.batch = 64` or `[64, 16]`). `Structure` is a TOML
/// array of tables kept as compact JSON text (`model.layers`); the module that owns the key reads it.
struct Structure {
  std::string json;  // empty: not set
  bool operator==(const Structure&) const = default;
};
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                           std::vector<std::string>, Structure>;

/// A rule on a value: the text that help prints ("≥ 1", "one of a | b") and the test; an empty test allows everything.
struct Rule {
  std::string text;
  std::function<bool(const Value&)> allows;
};

/// Every integer option has a bound such that what it is turned into holds it, with room for sums: counts of steps, samples of a
/// batch, members and the like become an int or 32 bits.
inline constexpr double kMostCount = 1e9;
/// And every option that becomes a float32 one such that it stays a number, with room for a few products.
inline constexpr double kMostFloat = 1e30;
inline constexpr double kLeastFloat = 1e-30;  ///< of those that are divided by
[[nodiscard]] Rule anything();
[[nodiscard]] Rule at_least(double low);  ///< numbers, and every element of a list
[[nodiscard]] Rule above(double low);
[[nodiscard]] Rule between(double low, double high);  ///< both ends included
[[nodiscard]] Rule one_of(std::vector<std::string> names);
[[nodiscard]] Rule not_empty();                    ///< text, lists and Structures
[[nodiscard]] Rule both(Rule first, Rule second);  ///< e.g. both(at_least(1), not_empty()) for a list

/// One row: a dotted key, its default, its rule and one line of help. A default that its own rule refuses makes the key
/// required (`model.name`: text, not_empty(), no default): a configuration that does not set it is an error.
struct Option {
  std::string key;
  Value default_value;
  Rule rule;
  std::string help;
  std::string scope;  ///< empty: always in force; else the strategy that reads it
};

/// Binds the options of one section to the members of T. Member types: bool, std::int64_t, double, std::string, vectors of
/// the last three, Structure.
template <class T>
class Table {
 public:
  struct Entry {
    template <class M>
    Entry(std::string name, M T::*member, Rule rule, std::string help)
        : name(std::move(name)),
          rule(std::move(rule)),
          help(std::move(help)),
          read([member](const T& t) { return Value{t.*member}; }),
          write([member](T& t, const Value& v) { t.*member = std::get<M>(v); }) {}
    std::string name;
    Rule rule;
    std::string help;
    std::function<Value(const T&)> read;
    std::function<void(T&, const Value&)> write;
  };
  Table(std::string section, std::vector<Entry> entries, T defaults = {})
      : section_(std::move(section)), entries_(std::move(entries)), defaults_(std::move(defaults)) {}

  [[nodiscard]] const std::string& section() const noexcept { return section_; }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] const T& defaults() const noexcept { return defaults_; }

 private:
  std::string section_;
  std::vector<Entry> entries_;
  T defaults_;
};

/// The rows of every table of the program. The same key may stand in several scopes (easgd and eamsgd both have
/// strategy.tau) with their own defaults and rules; a file may set keys of scopes that are not chosen: they are checked
/// against that scope's rule and otherwise ignored, so that changing strategy.name is all it takes to change strategy.
class Schema {
 public:
  template <class T>
  void add(const Table<T>& table, const std::string& scope = {}) {
    for (const auto& e : table.entries())
      add_option({table.section() + "." + e.name, e.read(table.defaults()), e.rule, e.help, scope});
  }
  void add_option(Option option);  ///< throws std::logic_error for a second row of the same key and scope
  [[nodiscard]] const std::vector<Option>& options() const noexcept { return options_; }
  /// The row in force for `key` under `scope`; null when there is none.
  [[nodiscard]] const Option* find(std::string_view key, std::string_view scope) const noexcept;
  /// The known key nearest to a misspelt one (edit distance), for messages.
  [[nodiscard]] std::string nearest(std::string_view key) const;
  /// The known section nearest to a misspelt one; empty when the schema has none.
  [[nodiscard]] std::string nearest_section(std::string_view section) const;
  /// Help text: every section with key, default, rule and help, in the order of the tables.
  [[nodiscard]] std::string help() const;

 private:
  std::vector<Option> options_;
};

/// A resolved configuration: every key in force has a value.
class Config {
 public:
  /// Reads `path` (TOML), then applies `overrides` ("key=value" in order; value is TOML, else a bare string). The scope is
  /// the final value of `strategy.name`.
  [[nodiscard]] static Result<Config> load(const Schema& schema, const std::string& path,
                                           const std::vector<std::string>& overrides);
  /// The same from text; `origin` stands for the file in messages, and `flag` for the overrides: what they came from.
  [[nodiscard]] static Result<Config> parse(const Schema& schema, std::string_view text, const std::string& origin,
                                            const std::vector<std::string>& overrides,
                                            const std::string& flag = "--set");

  /// The struct that `table` binds, filled. The table must be part of the Schema.
  template <class T>
  [[nodiscard]] T get(const Table<T>& table) const {
    T t = table.defaults();
    for (const auto& e : table.entries()) e.write(t, value(table.section() + "." + e.name));
    return t;
  }
  [[nodiscard]] const Value& value(std::string_view key) const;  ///< throws std::out_of_range for an unknown key
  /// "configs/a.toml:12" where the file set `key`, "--set" (or the flag that set it) or "default": for messages of those who check values further.
  [[nodiscard]] std::string where(std::string_view key) const;
  /// Keys that were set but belong to strategies that are not chosen.
  [[nodiscard]] const std::vector<std::string>& unused() const noexcept { return unused_; }
  /// The whole resolved configuration as TOML that load() reads back to an equal Config.
  [[nodiscard]] std::string to_toml() const;
  /// Equal values of equal keys; where they were set does not matter.
  [[nodiscard]] bool operator==(const Config& other) const { return values_ == other.values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> origins_;
  std::vector<std::string> order_;  // of the schema, for to_toml
  std::vector<std::string> unused_;
};

/// TOML text of a value, as to_toml() and help() write it.
[[nodiscard]] std::string to_toml(const Value& value);

}  // namespace troupe::core
