#include "apps/reports/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "apps/grid/results.hpp"
#include "experiment/directory/run_directory.hpp"
#include "experiment/plot/figure.hpp"
#include "experiment/report/console_text.hpp"
#include "experiment/settings.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::vector<std::vector<std::string>>;  // rows; the first column names the row

const core::Value* find(const ComparedRun& run, const std::string& key) {
  const auto keys = experiment::keys_in_force(run.config);
  return std::ranges::find(keys, key) == keys.end() ? nullptr : &run.config.value(key);
}

/// A value as a table shows it: text without quotes.
std::string text_of(const core::Value* value) {
  if (value == nullptr) return "-";
  if (const auto* text = std::get_if<std::string>(value)) return text->empty() ? "\"\"" : *text;
  return core::to_toml(*value);
}

Json json_of(const core::Value* value) {
  if (value == nullptr) return nullptr;
  return std::visit(
      [](const auto& typed) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(typed)>, core::Structure>)
          return Json::parse(typed.json, nullptr, false);
        else
          return typed;
      },
      *value);
}

/// The summary of a run that is over, else what its last evaluation says.
Json results_of(const ComparedRun& run) {
  if (run.summary.is_object()) return run.summary;
  if (run.record.epochs.empty()) return Json::object();
  const auto& last = run.record.epochs.back();
  return {{"epochs", last.epoch},
          {"train", {{"loss", last.train_loss}}},
          {"test", {{"loss", last.test_loss}, {"accuracy", last.test_accuracy}}}};
}

std::string number_text(double value) {
  constexpr double kWhole = 1000, kLargest = 1e15;  // from a thousand on decimals are noise
  if (!std::isfinite(value)) return "-";
  if (value >= kWhole && value < kLargest) return report::grouped(static_cast<std::uint64_t>(std::llround(value)));
  return fmt::format("{:.4g}", value);
}

/// The results that tell runs apart; those of the first group stand there even when they are equal.
constexpr std::array kAlways{"epochs", "test.accuracy", "test.loss", "train.loss", "train.images_per_s", "wall_s"};
constexpr std::array kWhereTheyDiffer{"steps",
                                      "samples",
                                      "test.top5",
                                      "time.compute_s",
                                      "time.exchange_s",
                                      "time.wait_s",
                                      "time.load_s",
                                      "exchange.count",
                                      "exchange.bytes",
                                      "exchange.dropped",
                                      "exchange.refused",
                                      "exchange.staleness_mean",
                                      "exchange.staleness_max"};

bool differs(const std::vector<std::string>& row) {
  return std::any_of(row.begin() + 2, row.end(), [&](const std::string& cell) { return cell != row[1]; });
}

Cells result_rows(const std::vector<ComparedRun>& runs) {
  Cells rows{{"ended"}};
  for (const auto& run : runs) rows[0].push_back(run.record.outcome.empty() ? "not yet" : run.record.outcome);
  std::vector<std::vector<std::pair<std::string, Json>>> flat;
  for (const auto& run : runs) flat.push_back(grid::flatten(results_of(run)));
  const auto row_of = [&](const char* name) {
    std::vector<std::string> row{name};
    for (const auto& values : flat) {
      const auto found = std::ranges::find(values, name, &std::pair<std::string, Json>::first);
      if (found == values.end() || found->second.is_null())
        row.emplace_back("-");
      else
        row.push_back(found->second.is_string() ? found->second.get<std::string>()
                                                : number_text(found->second.get<double>()));
    }
    return row;
  };
  for (const char* name : kAlways) rows.push_back(row_of(name));
  for (const char* name : kWhereTheyDiffer)
    if (auto row = row_of(name); differs(row)) rows.push_back(std::move(row));
  return rows;
}

std::string padded(const std::string& text, std::size_t columns) {
  const auto used = plot::columns_of(text);
  return text + std::string(columns > used ? columns - used : 0, ' ');
}

std::size_t width_of(const Cells& rows, std::size_t column) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, plot::columns_of(row[column]));
  return width;
}

/// Rows with the columns [first, last) behind the name of each row.
std::string block(const Cells& rows, std::size_t first, std::size_t last) {
  std::string text;
  for (const auto& row : rows) {
    auto line = padded(row[0], width_of(rows, 0));
    for (std::size_t column = first; column < last; ++column)
      line += "  " + padded(row[column], width_of(rows, column));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// As many columns side by side as fit; the next ones below.
std::string blocks(const Cells& rows, std::size_t columns) {
  std::string text;
  for (std::size_t first = 1, last = 1; first < rows[0].size(); first = last) {
    auto used = width_of(rows, 0);
    for (; last < rows[0].size(); ++last) {
      used += 2 + width_of(rows, last);
      if (columns > 0 && used > columns && last > first) break;
    }
    if (!text.empty()) text += "\n";
    text += block(rows, first, last);
  }
  return text;
}

}  // namespace

core::Result<std::vector<ComparedRun>> read_compared(const std::vector<std::string>& directories) {
  auto records = plot::read_runs(directories);
  if (!records) return tl::unexpected(records.error());
  std::vector<ComparedRun> runs;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    const auto directory = experiment::RunDirectory::open(directories[i]);
    if (!directory) return tl::unexpected(directory.error());
    auto config = directory->read_config(experiment::schema(), {});
    if (!config) return tl::unexpected(config.error());
    auto& run = runs.emplace_back(directories[i], std::move(*config), nullptr, std::move((*records)[i]));
    // While a resumed run trains, the summary is that of the session before.
    if (auto summary = Json::parse(directory->read_summary(), nullptr, false);
        summary.is_object() && !run.record.outcome.empty())
      run.summary = std::move(summary);
  }
  return runs;
}

std::vector<std::string> differing_options(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> keys;
  for (const auto& option : experiment::schema().options()) {
    const auto& key = option.key;
    if (key == "run.name" || key == "run.dir" || std::ranges::find(keys, key) != keys.end()) continue;
    const auto* first = find(runs.front(), key);
    if (std::ranges::any_of(runs, [&](const ComparedRun& run) {
          const auto* value = find(run, key);
          return (value == nullptr) != (first == nullptr) || (value != nullptr && *value != *first);
        }))
      keys.push_back(key);
  }
  return keys;
}

std::string comparison_text(const std::vector<ComparedRun>& runs, std::size_t columns) {
  Cells options{{"options that differ"}}, results{{"results"}};
  std::size_t named = 0;  // columns that a table with the runs' names takes
  for (const auto& run : runs) named += 2 + plot::columns_of(run.record.label);
  constexpr std::size_t kRowName = 24;
  const bool by_name = columns == 0 || kRowName + named <= columns;
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto heading = by_name ? runs[i].record.label : fmt::format("run {}", i + 1);
    options[0].push_back(heading);
    results[0].push_back(heading);
    text += by_name ? "" : fmt::format("{}: {}\n", heading, runs[i].directory);
  }
  for (const auto& key : differing_options(runs)) {
    auto& row = options.emplace_back(1, key);
    for (const auto& run : runs) row.push_back(text_of(find(run, key)));
  }
  for (auto& row : result_rows(runs)) results.push_back(std::move(row));
  if (!by_name) text += "\n";
  text += options.size() == 1 ? "no option differs\n" : blocks(options, columns);
  return text + "\n" + blocks(results, columns);
}

Json comparison_json(const std::vector<ComparedRun>& runs, const std::vector<std::string>& pictures) {
  const auto differing = differing_options(runs);
  Json list = Json::array();
  for (const auto& run : runs) {
    Json options = Json::object();
    for (const auto& key : differing) options[key] = json_of(find(run, key));
    list.push_back({{"run", run.directory},
                    {"name", run.record.label},
                    {"ended", run.record.outcome.empty() ? Json(nullptr) : Json(run.record.outcome)},
                    {"options", std::move(options)},
                    {"summary", run.summary}});
  }
  return {{"differ", differing}, {"runs", std::move(list)}, {"pictures", pictures}};
}

}  // namespace troupe::apps
