/// What the files of a run's directory say, as values for the store. Pure functions on texts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "store/database.hpp"

namespace troupe::store {

/// Dotted keys and their values: a truth value is the text "true" or "false", a list of one element is the element, any other list is JSON
/// text.
using Values = std::vector<std::pair<std::string, Cell>>;

/// The keys of a saved configuration, also of one that this program does not know. Errc::config: no TOML.
[[nodiscard]] core::Result<Values> config_values(std::string_view toml, const std::string& path);

/// The value of `key`; nothing: it is not there.
[[nodiscard]] const Cell* find(const Values& values, std::string_view key);
[[nodiscard]] std::string text_of(const Cell& value);  // empty: nothing
[[nodiscard]] nlohmann::ordered_json json_of(const Cell& value);

/// 32 hexadecimal digits; equal for configurations that differ in run.name, run.dir and run.seed only.
[[nodiscard]] std::string identity_of(const Values& config);

/// The scalars of a summary.json under dotted names: nothing of tables and lists.
[[nodiscard]] Values summary_values(const nlohmann::ordered_json& summary);

/// "2026-01-02 03:04:05" of "20260102-030405-name"; empty: the name has no time.
[[nodiscard]] std::string started_of(std::string_view directory_name);
/// "name" of "20260102-030405-name"; else all of it.
[[nodiscard]] std::string name_of(std::string_view directory_name);

/// A value as a table shows it: a number with at most four decimals of note; "-" for nothing.
[[nodiscard]] std::string shown(const Cell& value);

}  // namespace troupe::store
