#include "experiment/plot/grid_record.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace troupe::plot {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// Adds a value once, in order.
void add(std::vector<std::string>& list, const std::string& value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

VariedKey sorted(VariedKey key, const std::vector<GridRun>& runs) {
  std::vector<std::pair<double, std::string>> numbers;
  for (const auto& run : runs)
    if (const auto found = run.settings.find(key.key); found != run.settings.end() && found->is_number())
      numbers.emplace_back(found->get<double>(), text_of(*found));
  std::ranges::sort(numbers);
  const auto [first, last] = std::ranges::unique(numbers);
  numbers.erase(first, last);
  if (numbers.size() != key.values.size()) return key;
  key.values.clear();
  for (const auto& [number, text] : numbers) {
    key.numbers.push_back(number);
    key.values.push_back(text);
  }
  return key;
}

}  // namespace

core::Result<bool> is_grid(const std::string& directory) {
  const auto path = directory + "/results.jsonl";
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "look for", path));
  return there;
}

core::Result<GridRecord> read_grid(const std::string& directory) {
  GridRecord grid;
  auto path = std::filesystem::path(directory);
  grid.name = (path.has_filename() ? path : path.parent_path()).filename().string();
  std::ifstream file(directory + "/results.jsonl");
  std::vector<std::string> strategies, bases;
  std::vector<std::pair<std::string, std::string>> told;  // strategy and base, per run
  for (std::string line; std::getline(file, line);) {
    const auto json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("status", "") != "done" || !json["summary"].is_object()) continue;
    GridRun run;
    run.settings = json.value("settings", Json::object());
    run.settings.erase("strategy.name");
    run.summary = json["summary"];
    if (const auto found = json.find("directory"); found != json.end() && found->is_string())
      run.directory = (std::filesystem::path(directory) / std::filesystem::path(*found).filename()).string();
    if (const auto found = json.find("seed"); found != json.end()) run.seed = found->dump();
    const auto strategy = json.value("strategy", "");
    const auto base = std::filesystem::path(json.value("base", "")).stem().string();
    told.emplace_back(strategy, base);
    add(strategies, strategy);
    add(bases, base);
    grid.runs.push_back(std::move(run));
  }
  if (grid.runs.empty())
    return core::fail(core::Errc::config, fmt::format("{}: no run of this grid is done yet", directory));
  const std::set<std::pair<std::string, std::string>> distinct(told.begin(), told.end());
  for (std::size_t i = 0; i < told.size(); ++i) {
    const auto& [strategy, base] = told[i];
    grid.runs[i].series = distinct.size() == strategies.size() ? strategy
                          : distinct.size() == bases.size()    ? base
                                                               : base + " " + strategy;
    add(grid.series, grid.runs[i].series);
  }
  std::vector<std::string> keys;
  for (const auto& run : grid.runs)
    for (const auto& [key, value] : run.settings.items()) add(keys, key);
  for (const auto& key : keys) {
    VariedKey varied{key, {}, {}};
    for (const auto& run : grid.runs)
      if (const auto value = value_of(run, key); !value.empty()) add(varied.values, value);
    if (varied.values.size() > 1) grid.keys.push_back(sorted(std::move(varied), grid.runs));
  }
  return grid;
}

std::string shown(const GridRecord& grid, const std::string& name) {
  const auto found = grid.replaced.find(name);
  return found == grid.replaced.end() ? name : found->second;
}

std::string value_of(const GridRun& run, const std::string& key) {
  const auto found = run.settings.find(key);
  return found == run.settings.end() ? std::string{} : text_of(*found);
}

double metric_of(const GridRun& run, std::string_view metric) {
  const Json* at = &run.summary;
  for (std::size_t begin = 0; begin <= metric.size();) {
    const auto end = std::min(metric.find('.', begin), metric.size());
    const auto found = at->is_object() ? at->find(std::string(metric.substr(begin, end - begin))) : at->end();
    if (!at->is_object() || found == at->end()) return std::numeric_limits<double>::quiet_NaN();
    at = &*found;
    begin = end + 1;
  }
  return at->is_number() ? at->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string short_key(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::string short_value(const std::string& value) {
  std::string text;
  for (const char c : value)
    if (c != '[' && c != ']' && c != '"' && c != ' ') text += c == ',' ? ' ' : c;
  return text;
}

}  // namespace troupe::plot
