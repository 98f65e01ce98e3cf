#include "apps/shell/value_kinds.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "apps/fetch/published.hpp"
#include "apps/help.hpp"
#include "experiment/settings.hpp"
#include "nn/zoo/models.hpp"
#include "sim/cluster/cluster_file.hpp"
#include "store/schema.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;
using Candidates = std::vector<Candidate>;

/// A run's directory has its configuration.
bool is_run(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory / "config.toml", ignored);
}

std::vector<std::string> folders_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    auto name = entry->path().filename().string();
    if (!name.starts_with('.') && entry->is_directory(ignored)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

Candidates strategy_names() {
  Candidates all;
  for (const auto& info : strategies::registry()) all.push_back({info.name, info.summary});
  return all;
}

Candidates model_names_with_help() {
  Candidates all;
  for (const auto& model : nn::model_zoo()) all.push_back({model.name, model.description});
  return all;
}

Candidates dataset_names() {
  Candidates all;
  for (const auto& dataset : fetch::published_datasets()) all.push_back({dataset.name, {}});
  return all;
}

Candidates schema_keys(const core::Schema& schema, const std::string& end) {
  Candidates all;
  std::set<std::string> seen;
  for (const auto& option : schema.options())
    if (seen.insert(option.key).second) all.push_back({option.key + end, option.help});
  return all;
}

Candidates values_of_key(const core::Schema& schema, const std::string& key) {
  if (key == "strategy.name") return strategy_names();
  if (key == "model.name") return model_names_with_help();
  Candidates all;
  const auto add = [&](const std::string& word) {
    if (const Candidate one{word, {}}; std::ranges::find(all, one) == all.end()) all.push_back(one);
  };
  for (const auto& option : schema.options()) {
    if (option.key != key) continue;
    for (const auto& name : option.rule.names) add(name);
    if (option.rule.automatic) add("auto");
    if (std::holds_alternative<bool>(option.default_value))
      for (const char* word : {"true", "false"}) add(word);
  }
  return all;
}

Candidates with_head(const std::string& head, Candidates words) {
  for (auto& word : words) word.text = head + word.text;
  return words;
}

/// KEY=VALUE of --set.
Candidates settings_of(const core::Schema& schema, std::string_view begun) {
  const auto equals = begun.find('=');
  if (equals == std::string_view::npos) return schema_keys(schema, "=");
  return with_head(std::string(begun.substr(0, equals + 1)),
                   values_of_key(schema, std::string(begun.substr(0, equals))));
}

/// Keys of the runs in a store: they are columns, and conditions begin with them.
Candidates run_keys(const std::string& end) {
  Candidates all{{"run" + end, "the directory"}, {"tag" + end, "a tag of the run"}};
  for (const auto& column : store::kRunColumns)
    all.push_back({std::string(column.name) + end, std::string(column.help)});
  for (auto& key : schema_keys(experiment::schema(), end)) all.push_back(std::move(key));
  return all;
}

/// `strategy=`, then its values.
Candidates conditions(std::string_view begun) {
  const auto equals = begun.find('=');
  if (equals == std::string_view::npos) return run_keys("=");
  auto key = std::string(begun.substr(0, equals));
  const auto head = key + "=";
  if (key == "status")
    return with_head(
        head, {{"done", {}}, {"running", {}}, {"diverged", {}}, {"interrupted", {}}, {"failed", {}}, {"killed", {}}});
  if (key == "strategy") key = "strategy.name";
  if (key == "model") key = "model.name";
  return with_head(head, values_of_key(experiment::schema(), key));
}

/// Of a list divided by commas the last part is being typed.
Candidates in_list(std::string_view begun, Candidates words) {
  const auto comma = begun.rfind(',');
  return with_head(comma == std::string_view::npos ? "" : std::string(begun.substr(0, comma + 1)), std::move(words));
}

/// "[one of a | b]"
Candidates choices(const std::string& rule) {
  constexpr std::string_view kBegin = "[one of ", kBetween = " | ";
  Candidates all;
  if (!rule.starts_with(kBegin) || !rule.ends_with(']')) return all;
  std::string_view rest = std::string_view(rule).substr(kBegin.size(), rule.size() - kBegin.size() - 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find(kBetween), rest.size());
    all.push_back({std::string(rest.substr(0, end)), {}});
    rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
  }
  return all;
}

const core::Schema& cluster_schema() {
  static const core::Schema schema = sim::cluster_keys();
  return schema;
}

bool has_option(const CLI::App& options, const std::string& name) {
  return options.get_option_no_throw(name) != nullptr;
}

Candidates runs_for(const CLI::App& options, std::string_view begun, const std::string& directory) {
  Candidates all;
  const bool by_path = !has_option(options, "--dir");
  const auto head = by_path ? directory + "/" : std::string();
  if (!by_path || begun.starts_with(head) || head.starts_with(begun))
    for (const auto& name : run_names(directory, begun.starts_with(head) ? begun.substr(head.size()) : ""))
      all.push_back({head + name, {}});
  return all;
}

/// Of one part of "CHECKPOINT|RUN_DIR".
ValueCandidates values_of_part(std::string_view part, const CLI::Option& option, const CLI::App& options,
                               std::string_view begun, const std::string& directory) {
  if (part == "STRATEGY") return {strategy_names()};
  if (part == "MODEL") return {model_names_with_help()};
  if (part == "DATASET") return {dataset_names()};
  if (part == "FILTER") return {conditions(begun)};
  if (part == "KEY") return {run_keys("")};
  if (part == "KEYS") return {in_list(begun, run_keys(""))};
  if (part == "KEY=VALUE")
    return {settings_of(option.check_lname("cluster-set") ? cluster_schema() : experiment::schema(), begun)};
  if (part == "RUN" || part == "RUN_DIR")
    return {runs_for(options, begun, directory), has_option(options, "--dir") ? Paths::none : Paths::directories};
  if (part == "DIR" || part == "GRID") return {{}, Paths::directories};
  constexpr std::array kFiles{"FILE", "FILE.png", "FILE.json", "CONFIG", "IMAGE", "CHECKPOINT", "COMMAND"};
  if (std::ranges::find(kFiles, part) != kFiles.end()) return {{}, Paths::files};
  return {};
}

}  // namespace

std::vector<std::string> run_names(const std::string& directory, std::string_view begun) {
  std::vector<std::string> found;
  const auto fits = [&](const std::string& name) { return name.starts_with(begun) || begun.starts_with(name + "/"); };
  for (const auto& name : folders_in(directory)) {
    if (!fits(name)) continue;
    const auto path = fs::path(directory) / name;
    if (is_run(path)) {
      if (name.starts_with(begun)) found.push_back(name);
      continue;
    }
    for (const auto& inner : folders_in(path)) {
      auto whole = fmt::format("{}/{}", name, inner);
      if (whole.starts_with(begun) && is_run(path / inner)) found.push_back(std::move(whole));
    }
  }
  return found;
}

ValueCandidates values_of(const CLI::Option& option, const CLI::App& options, std::string_view begun,
                          const std::string& directory) {
  const auto type = value_type(option);
  ValueCandidates all{takes_many(option) ? in_list(begun, choices(type.rule)) : choices(type.rule)};
  const auto name = option.get_positional() ? option.get_name(true) : type.name;
  if (!all.words.empty()) return all;
  std::string_view rest = name;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('|'), rest.size());
    auto part = values_of_part(rest.substr(0, end), option, options, begun, directory);
    std::ranges::move(part.words, std::back_inserter(all.words));
    all.paths = std::max(all.paths, part.paths);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

std::vector<Candidate> help_topics(const CLI::App& options, std::string_view begun) {
  const bool cluster = has_option(options, "--cluster-set");
  const auto& schema = cluster ? cluster_schema() : experiment::schema();
  Candidates all{{"all", "all keys"}};
  for (const auto& section : schema.sections()) {
    all.push_back({section, "a section"});
    if (begun.starts_with(section + "."))
      for (const auto& key : schema.keys_of(section)) all.push_back({fmt::format("{}.{}", section, key), {}});
  }
  return all;
}

}  // namespace troupe::apps
