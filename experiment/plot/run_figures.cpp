#include "experiment/plot/run_figures.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::plot {
namespace {

using Reading = double EpochPoint::*;

struct Quantity {
  std::string name, axis;
  Reading train, test;
  double scale;
};

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : "NaN"; }

/// True: the quantity needs a logarithmic axis. Losses often fall by orders of magnitude.
bool spans_decades(const std::vector<RunRecord>& runs, const Quantity& quantity) {
  constexpr double kFactor = 8;
  double low = INFINITY, high = 0;
  for (const auto& run : runs)
    for (const auto& point : run.epochs)
      for (const double value : {point.*quantity.train, point.*quantity.test})
        if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  return low > 0 && high > kFactor * low;
}

Figure curve(const std::vector<RunRecord>& runs, const Quantity& quantity, const std::string& title) {
  Figure figure{quantity.name, 1200, 620, {}, {}};
  std::vector<std::string> labels;
  std::string table;
  for (const auto& run : runs) {
    labels.push_back(run.label);
    for (const auto& point : run.epochs)
      table +=
          fmt::format("{} {} {} {}\n", number(point.epoch), number(point.seconds),
                      number(quantity.scale * point.*quantity.train), number(quantity.scale * point.*quantity.test));
    table += "\n\n";
  }
  const auto file = quantity.name + ".dat";
  figure.data[file] = table;
  const auto panel = [&](int column, const char* axis, const char* ticks, bool with_key) {
    std::vector<std::string> plots;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      plots.push_back(fmt::format("{} index {} using {}:4 with linespoints{} {}", literal(file), i, column,
                                  series_style(i), with_key ? "title " + literal(labels[i]) : "notitle"));
      plots.push_back(
          fmt::format("{} index {} using {}:3 with lines{} notitle", literal(file), i, column, series_style(i, true)));
    }
    return fmt::format("set xlabel {}\n{}{}plot {}\n", literal(axis), ticks,
                       with_key ? "" : "unset key\nset ylabel ''\n", fmt::join(plots, ", \\\n  "));
  };
  constexpr double kEachEpoch = 20;  // up to here every epoch has a tic
  double most_epochs = 0;
  for (const auto& run : runs) most_epochs = std::max(most_epochs, run.epochs.back().epoch);
  const auto legend = legend_below(labels, figure.width / 2 - 70, figure.height);
  figure.script = fmt::format(
      "{}{}{}set ylabel {}\nset multiplot layout 1,2 title {} margins 0.075,0.975,{:.3f},0.88 spacing 0.075\n{}{}unset "
      "multiplot\n",
      frame(), legend.key, quantity.scale == 1 && spans_decades(runs, quantity) ? "set logscale y\n" : "",
      literal(quantity.axis), literal(title + "   (solid: test, dashed: train)"), legend.bottom,
      panel(1, "epochs", most_epochs <= kEachEpoch ? "set xtics 1\n" : "", true),
      panel(2, "training time [s]", "set xtics autofreq\nset xrange [0:*]\n", false));
  return figure;
}

HeatMap wait_matrix(const RunRecord& run, const std::string& suffix) {
  const auto& waits = *run.waits;
  HeatMap map;
  map.name = "waits" + suffix;
  map.title = fmt::format("{}: who waited for whom", run.label);
  map.x_label = "stood still for";
  map.y_label = "worker";
  map.unit = "seconds";
  for (std::size_t w = 0; w < waits.workers; ++w) {
    map.rows.push_back(fmt::format("{}", w));
    map.columns.push_back(fmt::format("worker {}", w));
  }
  for (std::size_t s = 0; s < waits.servers; ++s) map.columns.push_back(fmt::format("server {}", s));
  map.values = waits.seconds;
  double most = 0;
  for (const auto& row : waits.seconds) most = std::max(most, *std::ranges::max_element(row));
  map.format = most < 1 ? "{:.4f}" : most < 100 ? "{:.2f}" : "{:.0f}";
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

std::vector<Figure> curves(const std::vector<RunRecord>& runs, const std::string& title) {
  std::vector<RunRecord> evaluated;
  for (const auto& run : runs)
    if (!run.epochs.empty()) evaluated.push_back(run);
  if (evaluated.empty()) return {};
  return {curve(evaluated, {"loss", "loss", &EpochPoint::train_loss, &EpochPoint::test_loss, 1}, title),
          curve(evaluated, {"accuracy", "accuracy [%]", &EpochPoint::train_accuracy, &EpochPoint::test_accuracy, 100},
                title)};
}

std::vector<Figure> cluster_figures(const RunRecord& run, const std::string& suffix) {
  std::vector<Figure> figures;
  if (run.waits) figures.push_back(draw(wait_matrix(run, suffix)));
  if (run.staleness) figures.push_back(draw(staleness_bars(run, suffix)));
  return figures;
}

}  // namespace troupe::plot
