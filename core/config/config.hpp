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
/// A program's Schema is the union of its tables. A Config is the values of one file plus overrides, checked against the Schema.
/// Every error is Errc::config and names file:line (or "--set"), the value, the rule and the nearest known key.
/// Thread rule: Tables and Schemas are built once and are read-only afterwards; a Config is a value.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace troupe::core {

/// The types of a value. A list also accepts a scalar, as a list of one (`data.batch = 64` or `[64, 16]`). `Structure` is a TOML
/// array of tables, kept as compact JSON text (`model.layers`); the module that owns the key parses it.
struct Structure {
  std::string json;  // empty: not set
  bool operator==(const Structure&) const = default;
};
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                           std::vector<std::string>, Structure>;

/// A rule on a value: its text in the help ("≥ 1", "one of a | b") and its test. An empty test allows every value. `automatic`: the
/// word "auto" is allowed, too; it reads as kAutomatic.
struct Rule {
  std::string text;
  std::function<bool(const Value&)> allows;
  bool automatic = false;
  std::vector<std::string> names = {};  // of one_of(): errors name the nearest
};

/// The number that "auto" reads as. A Derivation of the Schema replaces it, so that a resolved configuration holds the number meant.
inline constexpr double kAutomatic = -1;

/// The upper bound of integer options. Counts (steps, samples of a batch, members) become an int or 32 bits; the bound leaves room
/// for sums of them.
inline constexpr double kMostCount = 1e9;
/// The upper bound of options that become float32: products of a few of them are still finite.
inline constexpr double kMostFloat = 1e30;
inline constexpr double kLeastFloat = 1e-30;  ///< lower bound of options that are divisors
[[nodiscard]] Rule anything();
[[nodiscard]] Rule at_least(double low);  ///< numbers, and every element of a list
[[nodiscard]] Rule above(double low);
[[nodiscard]] Rule between(double low, double high);  ///< both ends included
[[nodiscard]] Rule one_of(std::vector<std::string> names);
[[nodiscard]] Rule not_empty();                    ///< text, lists and Structures
[[nodiscard]] Rule both(Rule first, Rule second);  ///< e.g. both(at_least(1), not_empty()) for a list
/// A number, or "auto". REQUIRES a rule that refuses kAutomatic, as a number that the user wrote.
[[nodiscard]] Rule or_auto(Rule numbers);

/// One row: a dotted key, its default, its rule and one line of help. If the rule refuses the default, the key is required
/// (`model.name`: text, not_empty(), no default): a configuration that does not set it is an error.
struct Option {
  std::string key;
  Value default_value;
  Rule rule;
  std::string help;
  std::string scope;  ///< empty: always in force; otherwise the strategy that reads the key
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

class Config;

/// What an option's value becomes once all values are known, and why: one line for the user. Nothing: it stays as it is.
struct Derived {
  Value value;
  std::string why;
};
using Derivation = std::function<std::optional<Derived>(const Config&)>;

/// The rows of all tables of the program. One key may stand in several scopes (easgd and eamsgd both have strategy.tau), each with
/// its own default and rule. A file may set keys of scopes that are not chosen. They are checked against the rule of their scope
/// and not used. So a change of strategy.name is enough to change the strategy.
class Schema {
 public:
  template <class T>
  void add(const Table<T>& table, const std::string& scope = {}) {
    for (const auto& e : table.entries())
      add_option({table.section() + "." + e.name, e.read(table.defaults()), e.rule, e.help, scope});
  }
  void add_option(Option option);  ///< throws std::logic_error if the key already has a row in this scope
  [[nodiscard]] const std::vector<Option>& options() const noexcept { return options_; }
  /// The value of `key` follows from the others: `derivation` is asked when a configuration has been read. Later ones see the values of
  /// earlier ones.
  void derive(std::string key, Derivation derivation);
  [[nodiscard]] const std::vector<std::pair<std::string, Derivation>>& derivations() const noexcept {
    return derivations_;
  }
  /// The row in force for `key` under `scope`; null if there is none.
  [[nodiscard]] const Option* find(std::string_view key, std::string_view scope) const noexcept;
  /// The known key nearest to a misspelt one, for messages: near in its name, or its help begins with these words. Empty: none is near.
  [[nodiscard]] std::string nearest(std::string_view key) const;
  /// The known section nearest to a misspelt one; empty: none is near.
  [[nodiscard]] std::string nearest_section(std::string_view section) const;
  /// What errors say of a key that is not there: its name, and the nearest key, or the keys of its section.
  [[nodiscard]] std::string unknown(std::string_view key) const;
  /// The names of the sections, in the order of the tables ("run", "hosts.NAME").
  [[nodiscard]] std::vector<std::string> sections() const;
  /// The names of the keys in a section, each once.
  [[nodiscard]] std::vector<std::string> keys_of(std::string_view section) const;
  /// Help text: key, default, help and rule, in the order of the tables, in lines of at most `columns`. `about`: a section, its first
  /// part ("hosts"), or a key; empty: all sections. An unknown `about` gives an empty text.
  [[nodiscard]] std::string help(std::size_t columns, std::string_view about = {}) const;

 private:
  std::vector<Option> options_;
  std::vector<std::pair<std::string, Derivation>> derivations_;
};

/// A resolved configuration: every key in force has a value.
class Config {
 public:
  /// Reads `path` (TOML), then applies `overrides` ("key=value") in order; a value is TOML or else a bare string. The scope is the
  /// final value of `strategy.name`.
  [[nodiscard]] static Result<Config> load(const Schema& schema, const std::string& path,
                                           const std::vector<std::string>& overrides);
  /// The same from text. Messages name `origin` as the file and `flag` as the source of the overrides.
  [[nodiscard]] static Result<Config> parse(const Schema& schema, std::string_view text, const std::string& origin,
                                            const std::vector<std::string>& overrides,
                                            const std::string& flag = "--set");

  /// The struct of `table`, filled. The table must be part of the Schema.
  template <class T>
  [[nodiscard]] T get(const Table<T>& table) const {
    T t = table.defaults();
    for (const auto& e : table.entries()) e.write(t, value(table.section() + "." + e.name));
    return t;
  }
  [[nodiscard]] const Value& value(std::string_view key) const;  ///< throws std::out_of_range for an unknown key
  /// For messages of code that checks values further: "configs/a.toml:12" if the file set `key`, the flag ("--set") if an override
  /// did, or "default". An element of a list of tables has its own line: "model.layers[2]".
  [[nodiscard]] std::string where(std::string_view key) const;
  /// Keys that were set but belong to strategies that are not chosen.
  [[nodiscard]] const std::vector<std::string>& unused() const noexcept { return unused_; }
  /// Why the values of some keys are not, or not in these words, what the user set: by key, in the order of the Schema's derivations.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& reasons() const noexcept { return reasons_; }
  /// The resolved configuration as TOML. load() reads it back to an equal Config. Equal configurations have equal texts.
  [[nodiscard]] std::string to_toml() const;
  /// The same with the reasons as comments, for people.
  [[nodiscard]] std::string to_toml_with_reasons() const;
  /// Compares keys and values only, not where they were set.
  [[nodiscard]] bool operator==(const Config& other) const { return values_ == other.values_; }

 private:
  [[nodiscard]] std::string text(bool with_reasons) const;

  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> origins_;
  std::vector<std::string> order_;  // of the schema, for to_toml
  std::vector<std::string> unused_;
  std::vector<std::pair<std::string, std::string>> reasons_;
};

/// TOML text of a value, as in Config::to_toml() and Schema::help().
[[nodiscard]] std::string to_toml(const Value& value);

}  // namespace troupe::core
