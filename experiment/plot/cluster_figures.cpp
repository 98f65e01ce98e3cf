#include "experiment/plot/cluster_figures.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe::plot {
namespace {

HeatMap wait_matrix(const RunRecord& run, const std::string& suffix) {
  const auto& waits = *run.waits;
  HeatMap map;
  map.from_zero = true;
  map.name = "waits" + suffix;
  map.title = fmt::format("{}: who waited for whom", run.label);
  map.x_label = "stood still for";
  map.y_label = "worker";
  for (std::size_t w = 0; w < waits.workers; ++w) {
    map.rows.push_back(fmt::format("{}", w));
    map.columns.push_back(fmt::format("worker {}", w));
  }
  for (std::size_t s = 0; s < waits.servers; ++s) map.columns.push_back(fmt::format("server {}", s));
  map.values = waits.seconds;
  double most = 0;
  for (const auto& row : waits.seconds) most = std::max(most, *std::ranges::max_element(row));
  const bool short_waits = most < 1;
  map.unit = short_waits ? "milliseconds" : "seconds";
  if (short_waits) {
    constexpr double kMilli = 1000;
    most *= kMilli;
    for (auto& row : map.values)
      for (double& wait : row) wait *= kMilli;
  }
  map.format = most < 1 ? "{:.3f}" : most < 10 ? "{:.2f}" : most < 100 ? "{:.1f}" : "{:.0f}";
  for (std::size_t w = 0; w < waits.workers; ++w)
    if (map.values[w][w] == 0) map.values[w][w] = NAN;  // no worker waits for itself
  return map;
}

BarChart staleness_bars(const RunRecord& run, const std::string& suffix) {
  constexpr std::size_t kMostWorkers = 7;  // side by side
  const auto& staleness = *run.staleness;
  BarChart chart;
  chart.name = "staleness" + suffix;
  chart.title = fmt::format("{}: staleness of updates", run.label);
  chart.x_label = "versions of the centre that the worker had not seen";
  chart.y_label = "updates [%]";
  std::size_t bins = 0;
  for (const auto& row : staleness.workers)
    for (std::size_t k = 0; k < row.size(); ++k)
      if (row[k] > 0) bins = std::max(bins, k + 1);
  for (std::size_t k = 0; k < bins; ++k) chart.places.push_back(bin_label(staleness.edges, k));
  auto rows = staleness.workers;
  if (rows.size() > kMostWorkers) {
    for (std::size_t w = 1; w < rows.size(); ++w)
      for (std::size_t k = 0; k < bins; ++k) rows[0][k] += rows[w][k];
    chart.series.push_back(fmt::format("all {} workers", rows.size()));
    rows.resize(1);
  } else {
    for (std::size_t w = 0; w < rows.size(); ++w) chart.series.push_back(fmt::format("worker {}", w));
  }
  for (auto& row : rows) {
    row.resize(bins);
    double sum = 0;
    for (const double count : row) sum += count;
    for (double& count : row) count = sum > 0 ? 100 * count / sum : 0;
    chart.values.push_back(row);
  }
  return chart;
}

}  // namespace

std::string bin_label(const std::vector<double>& edges, std::size_t bin) {
  if (bin + 1 >= edges.size()) return fmt::format("≥ {}", edges[bin]);
  const double last = edges[bin + 1] - 1;
  return last > edges[bin] ? fmt::format("{}–{}", edges[bin], last) : fmt::format("{}", edges[bin]);
}

std::vector<Figure> cluster_figures(const RunRecord& run, const std::string& suffix) {
  std::vector<Figure> figures;
  if (run.waits) figures.push_back(draw(wait_matrix(run, suffix)));
  if (run.staleness) figures.push_back(draw(staleness_bars(run, suffix)));
  return figures;
}

}  // namespace troupe::plot
