#include "experiment/plot/grid_figures.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

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

std::vector<std::string> short_values(const VariedKey& key) {
  std::vector<std::string> values;
  for (const auto& value : key.values) values.push_back(short_value(value));
  return values;
}

bool anything(const std::vector<std::vector<double>>& rows) {
  return std::ranges::any_of(
      rows, [](const auto& row) { return std::ranges::any_of(row, [](double v) { return std::isfinite(v); }); });
}

/// Keys averaged besides seeds, for the title.
std::string others(const GridRecord& grid, const std::vector<std::string>& shown) {
  std::string text;
  for (const auto& key : grid.keys)
    if (std::ranges::find(shown, key.key) == shown.end())
      text += fmt::format("{}{}", text.empty() ? "" : ", ", short_key(key.key));
  return text.empty() ? "mean over seeds" : fmt::format("mean over seeds and {}", text);
}

/// A logarithmic axis suits values that grow by factors, as tau = 1, 2, 4, 8, 16.
bool by_factors(const std::vector<double>& numbers) {
  constexpr double kSpan = 8;
  return numbers.size() > 2 && numbers.front() > 0 && numbers.back() >= kSpan * numbers.front();
}

}  // namespace

Mean mean_of(const std::vector<double>& numbers) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  if (numbers.empty()) return {kNothing, kNothing};
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number;
  const double mean = sum / static_cast<double>(numbers.size());
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return {mean, numbers.size() > 1 ? std::sqrt(squares / static_cast<double>(numbers.size() - 1)) : 0};
}

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
        map.title = fmt::format("{} ({}): {}", grid.name, series, others(grid, {down.key, across.key}));
        map.x_label = across.key;
        map.y_label = down.key;
        map.unit = unit.label;
        map.columns = short_values(across);
        map.rows = short_values(down);
        if (unit.factor == 100) map.format = "{:.2f}";
        if (metric.ends_with("images_per_s")) map.format = "{:.0f}";
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
    chart.places = short_values(key);
    chart.positions = key.numbers;
    chart.logarithmic = by_factors(key.numbers);
    std::vector<std::string> shown{key.key};
    const auto add = [&](const std::string& label, const Wanted& wanted) {
      LineChart::Line line{label, {}, {}};
      for (const auto& value : key.values) {
        const auto mean = mean_where(
            grid, metric, [&](const GridRun& run) { return wanted(run) && value_of(run, key.key) == value; });
        line.values.push_back(unit.factor * mean.mean);
        line.deviations.push_back(unit.factor * mean.deviation);
      }
      if (anything({line.values})) chart.lines.push_back(std::move(line));
    };
    const auto other = std::ranges::find_if(grid.keys, [&](const VariedKey& candidate) {
      return candidate.key != key.key && candidate.values.size() <= kMostLines;
    });
    if (grid.series.size() > 1 || other == grid.keys.end()) {
      for (const auto& series : grid.series) add(series, [&](const GridRun& run) { return run.series == series; });
    } else {
      shown.push_back(other->key);
      for (const auto& value : other->values)
        add(fmt::format("{} = {}", short_key(other->key), short_value(value)),
            [&](const GridRun& run) { return value_of(run, other->key) == value; });
    }
    chart.title = fmt::format("{}: {} ± standard deviation", grid.name, others(grid, shown));
    if (!chart.lines.empty()) figures.push_back(draw(chart));
  }
  return figures;
}

}  // namespace troupe::plot
