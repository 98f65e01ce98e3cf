#include "experiment/plot/grid_figures.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/plot/run_figures.hpp"

namespace troupe::plot {
namespace {

constexpr std::size_t kMostKeys = 3;    // the keys of the shown pairs
constexpr std::size_t kMostLines = 10;  // in one chart

using Wanted = std::function<bool(const GridRun&)>;

Mean mean_where(const GridRecord& grid, const std::string& metric, const Wanted& wanted) {
  std::vector<double> numbers;
  for (const auto& run : grid.runs)
    if (const double value = metric_of(run, metric); wanted(run) && std::isfinite(value)) numbers.push_back(value);
  return mean_of(numbers);
}

std::string file_text(std::string text) {
  std::ranges::replace(text, '.', '-');
  std::ranges::replace(text, '/', '-');
  std::ranges::replace(text, ' ', '-');
  return text;
}

/// The key's last part, or the whole key where another key ends alike: data.name and model.name.
std::string file_key(const GridRecord& grid, const std::string& key) {
  const bool alone = std::ranges::count_if(grid.keys, [&](const VariedKey& other) {
                       return short_key(other.key) == short_key(key);
                     }) == 1;
  return file_text(alone ? short_key(key) : key);
}

std::vector<std::string> short_values(const GridRecord& grid, const VariedKey& key) {
  std::vector<std::string> values;
  for (const auto& value : key.values) values.push_back(short_value(shown(grid, value)));
  return values;
}

bool anything(const std::vector<std::vector<double>>& rows) {
  return std::ranges::any_of(
      rows, [](const auto& row) { return std::ranges::any_of(row, [](double v) { return std::isfinite(v); }); });
}

std::size_t seeds_of(const GridRecord& grid) {
  std::set<std::string> seeds;
  for (const auto& run : grid.runs) seeds.insert(run.seed);
  return seeds.size();
}

/// What a picture's numbers are the mean of: seeds and keys that it does not show. One seed and no such key: no mean, so nothing to say.
/// `deviates`: the picture shows deviations.
std::string title_of(const GridRecord& grid, const std::string& of, const std::vector<std::string>& shown_keys,
                     bool deviates) {
  std::vector<std::string> averaged;
  if (const auto seeds = seeds_of(grid); seeds > 1) averaged.push_back(fmt::format("{} seeds", seeds));
  for (const auto& key : grid.keys)
    if (std::ranges::find(shown_keys, key.key) == shown_keys.end()) averaged.push_back(short_key(key.key));
  const auto name = shown(grid, grid.name) + (of.empty() ? "" : fmt::format(" ({})", of));
  if (averaged.empty()) return name;
  return fmt::format("{}: mean over {}{}", name, fmt::join(averaged, ", "), deviates ? " ± standard deviation" : "");
}

bool any_deviation(const std::vector<double>& deviations) {
  return std::ranges::any_of(deviations, [](double deviation) { return deviation > 0; });
}

/// Times, counts and staleness: their heat maps begin at 0, so that no wait looks like none.
bool counts_from_zero(const std::string& metric) {
  return metric.starts_with("time.") || metric.starts_with("exchange.") || metric.ends_with("wall_s");
}

/// fmt format of a metric's numbers in its unit.
std::string format_of(const std::string& metric, const Unit& unit) {
  if (unit.factor == 100) return "{:.2f}";
  return metric.ends_with("images_per_s") ? "{:.0f}" : "{:.3g}";
}

/// A logarithmic axis suits values that grow by factors, as tau = 1, 2, 4, 8, 16.
bool by_factors(const std::vector<double>& numbers) {
  constexpr double kSpan = 8;
  return numbers.size() > 2 && numbers.front() > 0 && numbers.back() >= kSpan * numbers.front();
}

}  // namespace

Unit unit_of(const std::string& metric) {
  std::string words = metric;
  std::ranges::replace(words, '.', ' ');
  std::ranges::replace(words, '_', ' ');
  if (metric.ends_with("accuracy") || metric.ends_with("top5")) return {words + " [%]", 100};
  if (metric.ends_with("images_per_s")) return {"training speed [images/s]", 1};
  if (metric.ends_with("_s")) return {words.substr(0, words.size() - 2) + " [s]", 1};
  if (metric.find("staleness") != std::string::npos) return {words + " [versions]", 1};
  if (metric.ends_with("bytes")) return {words + " [GB]", 1e-9};
  return {words, 1};
}

std::vector<Figure> heat_maps(const GridRecord& grid, const std::string& metric) {
  std::vector<Figure> figures;
  FileNames names;
  const auto unit = unit_of(metric);
  const auto count = std::min(grid.keys.size(), kMostKeys);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      for (const auto& series : grid.series) {
        const auto &down = grid.keys[a], &across = grid.keys[b];
        HeatMap map;
        map.name = names.take(fmt::format("heat-{}-{}-{}{}", file_text(metric), file_key(grid, down.key),
                                          file_key(grid, across.key),
                                          grid.series.size() > 1 ? fmt::format("-{}", file_text(series)) : ""));
        map.title = title_of(grid, shown(grid, series), {down.key, across.key}, false);
        map.x_label = across.key;
        map.y_label = down.key;
        map.unit = unit.label;
        map.columns = short_values(grid, across);
        map.rows = short_values(grid, down);
        map.format = format_of(metric, unit);
        map.from_zero = counts_from_zero(metric);
        for (const auto& y : down.values) {
          auto& row = map.values.emplace_back();
          for (const auto& x : across.values)
            row.push_back(unit.factor * mean_where(grid, metric, [&](const GridRun& run) {
                                          return run.series == series && value_of(run, down.key) == y &&
                                                 value_of(run, across.key) == x;
                                        }).mean);
        }
        if (anything(map.values)) figures.push_back(draw(map));
      }
    }
  }
  return figures;
}

std::vector<Figure> lines(const GridRecord& grid, const std::string& metric) {
  std::vector<Figure> figures;
  FileNames names;
  const auto unit = unit_of(metric);
  for (const auto& key : grid.keys) {
    LineChart chart;
    chart.name = names.take(fmt::format("lines-{}-{}", file_text(metric), file_key(grid, key.key)));
    chart.x_label = key.key;
    chart.y_label = unit.label;
    chart.places = short_values(grid, key);
    chart.positions = key.numbers;
    chart.logarithmic = by_factors(key.numbers);
    std::vector<std::string> shown_keys{key.key};
    bool deviates = false;
    const auto add = [&](const std::string& label, const Wanted& wanted) {
      LineChart::Line line{label, {}, {}};
      line.constant = std::ranges::none_of(
          grid.runs, [&](const GridRun& run) { return wanted(run) && !value_of(run, key.key).empty(); });
      for (const auto& value : key.values) {
        const auto mean = mean_where(grid, metric, [&](const GridRun& run) {
          return wanted(run) && (line.constant || value_of(run, key.key) == value);
        });
        line.values.push_back(unit.factor * mean.mean);
        line.deviations.push_back(unit.factor * mean.deviation);
      }
      if (!anything({line.values})) return;
      if (line.constant) line.label += fmt::format(" (has no {})", short_key(key.key));
      deviates = deviates || (!line.constant && any_deviation(line.deviations));
      chart.lines.push_back(std::move(line));
    };
    const auto other = std::ranges::find_if(grid.keys, [&](const VariedKey& candidate) {
      return candidate.key != key.key && candidate.values.size() <= kMostLines;
    });
    if (grid.series.size() > 1 || other == grid.keys.end()) {
      for (const auto& series : grid.series)
        add(shown(grid, series), [&](const GridRun& run) { return run.series == series; });
    } else {
      shown_keys.push_back(other->key);
      for (const auto& value : other->values)
        add(fmt::format("{} = {}", short_key(other->key), short_value(shown(grid, value))),
            [&](const GridRun& run) { return value_of(run, other->key) == value; });
    }
    chart.title = title_of(grid, "", shown_keys, deviates);
    if (!chart.lines.empty()) figures.push_back(draw(chart));
  }
  return figures;
}

std::vector<Figure> bars(const GridRecord& grid, const std::string& metric) {
  if (!grid.keys.empty()) return {};
  const auto unit = unit_of(metric);
  ValueChart chart;
  chart.name = "bars-" + file_text(metric);
  chart.y_label = unit.label;
  chart.format = format_of(metric, unit);
  chart.bars = counts_from_zero(metric) || metric.ends_with("images_per_s");
  for (const auto& series : grid.series) {
    const auto mean = mean_where(grid, metric, [&](const GridRun& run) { return run.series == series; });
    chart.places.push_back(shown(grid, series));
    chart.values.push_back(unit.factor * mean.mean);
    chart.deviations.push_back(unit.factor * mean.deviation);
  }
  if (!anything({chart.values})) return {};
  chart.title = title_of(grid, "", {}, any_deviation(chart.deviations));
  return {draw(chart)};
}

std::vector<Figure> series_curves(const GridRecord& grid, const std::vector<RunRecord>& runs,
                                  const std::vector<Axis>& over) {
  if (!grid.keys.empty()) return {};
  std::vector<RunRecord> means;
  bool deviates = false;
  for (const auto& series : grid.series) {
    std::vector<RunRecord> same;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (grid.runs[i].series == series) same.push_back(runs[i]);
    means.push_back(average(same, shown(grid, series)));
    deviates = deviates || !means.back().deviations.empty();
  }
  return curves(means, title_of(grid, "", {}, deviates), over);
}

}  // namespace troupe::plot
