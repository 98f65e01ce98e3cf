#include "service/options/config_check.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/exchange_check.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/state/state_checks.hpp"

namespace troupe::service {
namespace {

constexpr std::string_view kOrigin = "config";  // the "file" of messages

bool may_be_in_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// The first option that a message names.
std::string key_in(std::string_view message) {
  const auto& options = experiment::schema().options();
  for (std::size_t begin = 0; begin < message.size();) {
    auto end = begin;
    while (end < message.size() && may_be_in_key(message[end])) ++end;
    const auto word = message.substr(begin, end - begin);
    if (word.find('.') != std::string_view::npos &&
        std::ranges::any_of(options, [&](const core::Option& option) { return option.key == word; }))
      return std::string(word);
    begin = end + 1;
  }
  return {};
}

ConfigVerdict refused(const core::Error& error) {
  ConfigVerdict verdict;
  verdict.errors.push_back({key_in(error.message), error.message});
  return verdict;
}

/// A value as an override has it: TOML.
core::Result<std::string> toml_of(const std::string& key, const Json& value) {
  const auto bad = [&] {
    return core::fail(core::Errc::usage,
                      fmt::format("{}: it must be a string, a number, a truth value or a list", key));
  };
  if (value.is_string()) return core::to_toml(core::Value{value.get<std::string>()});
  if (value.is_boolean() || value.is_number()) return value.dump();
  if (!value.is_array()) return bad();
  std::vector<std::string> elements;
  for (const auto& element : value) {
    if (element.is_array() || element.is_object()) return bad();
    auto text = toml_of(key, element);
    if (!text) return text;
    elements.push_back(std::move(*text));
  }
  return fmt::format("[{}]", fmt::join(elements, ", "));
}

core::Result<core::Config> parsed(const ConfigText& text) {
  const auto read = [&](const std::vector<std::string>& overrides) {
    return core::Config::parse(experiment::schema(), text.toml, std::string(kOrigin), overrides, std::string(kOrigin));
  };
  // A run of the user's own program has no data set of Troupe's, and need not name one.
  auto with_numbers = text.overrides;
  with_numbers.insert(with_numbers.begin(), "data.name=numbers");
  if (auto program = read(with_numbers); program && !program->get(nn::model_table()).command.empty()) return program;
  return read(text.overrides);
}

}  // namespace

core::Result<ConfigText> config_text(const Json& body) {
  ConfigText text;
  if (body.contains("config") && body.contains("toml"))
    return core::fail(core::Errc::usage, "give either config or toml");
  if (body.contains("toml")) {
    if (!body["toml"].is_string()) return core::fail(core::Errc::usage, "toml: it must be a string");
    text.toml = body["toml"].get<std::string>();
    return text;
  }
  if (!body.contains("config")) return core::fail(core::Errc::usage, "the body has neither config nor toml");
  if (body["config"].is_string()) {
    text.toml = body["config"].get<std::string>();
    return text;
  }
  if (!body["config"].is_object())
    return core::fail(core::Errc::usage, "config: it must be an object of keys and values");
  for (const auto& [key, value] : body["config"].items()) {
    if (key.empty() || !std::ranges::all_of(key, may_be_in_key))
      return core::fail(core::Errc::usage, fmt::format("\"{}\" is no key", key));
    auto toml = toml_of(key, value);
    if (!toml) return tl::unexpected(toml.error());
    text.overrides.push_back(fmt::format("{}={}", key, *toml));
  }
  return text;
}

ConfigVerdict check_config(const ConfigText& text) {
  auto config = parsed(text);
  if (!config) return refused(config.error());
  const auto settings = experiment::resolve(*config, experiment::intended_use(*config));
  if (!settings) return refused(settings.error());
  ConfigVerdict verdict;
  if (settings->model.command.empty()) {
    const auto spec = experiment::build_run_spec(*settings, false);
    if (!spec) return refused(spec.error());
    if (const auto leases = experiment::check_leases(*spec); !leases) return refused(leases.error());
    if (const auto checked = experiment::check_state(*spec); !checked) return refused(checked.error());
    for (const auto& note : experiment::notes_on(*spec)) verdict.warnings.push_back(note.text);
  } else {
    verdict.warnings.push_back("model.command: the program is not started to check it");
  }
  if (const auto crowded = experiment::crowding_here(*settings)) verdict.warnings.push_back(crowded->text);
  verdict.toml = settings->config.to_toml_with_reasons();
  return verdict;
}

Json json_of(const ConfigVerdict& verdict) {
  auto errors = Json::array();
  for (const auto& problem : verdict.errors) {
    Json one{{"message", problem.message}};
    if (!problem.key.empty()) one["key"] = problem.key;
    errors.push_back(std::move(one));
  }
  return {{"ok", verdict.errors.empty()}, {"errors", errors}, {"warnings", verdict.warnings}, {"config", verdict.toml}};
}

}  // namespace troupe::service
