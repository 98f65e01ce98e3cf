#include "experiment/plot/run_figures.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::plot {
namespace {

struct Quantity {
  std::string name, axis;
  double EpochPoint::*train;
  double EpochPoint::*test;
  double TrainPoint::*within;  // an epoch
  double ScorePoint::*score;
  double scale;
  bool may_be_logarithmic;  // losses often fall by orders of magnitude
};

const Quantity kLoss{
    "loss", "loss", &EpochPoint::train_loss, &EpochPoint::test_loss, &TrainPoint::loss, &ScorePoint::loss, 1, true};
const Quantity kAccuracy{"accuracy",
                         "accuracy [%]",
                         &EpochPoint::train_accuracy,
                         &EpochPoint::test_accuracy,
                         &TrainPoint::accuracy,
                         &ScorePoint::accuracy,
                         100,
                         false};

struct Point {
  double epoch, seconds, value, deviation;
};

/// The curves of one run: evaluations on two splits, and training.
struct Curve {
  std::size_t run = 0;
  std::string label;
  std::vector<Point> test, train, validation;
};

std::vector<Point> scores(const std::vector<ScorePoint>& evaluations, const Quantity& quantity) {
  std::vector<Point> points;
  for (const auto& point : evaluations)
    points.push_back({point.epoch, point.seconds, quantity.scale * point.*quantity.score, 0});
  return points;
}

/// One report of a worker is a few batches, too noisy for a curve: means over parts of equal length, weighted by samples.
std::vector<Point> within_epochs(const RunRecord& run, const Quantity& quantity) {
  constexpr double kMostPoints = 100;
  if (run.training.empty()) return {};
  const double first = run.training.front().epoch, last = run.training.back().epoch;
  const double width = std::max((last - first) / kMostPoints, 1e-12);
  std::vector<Point> points;
  double samples = 0, part = -1;
  for (const auto& point : run.training) {
    const double value = quantity.scale * point.*quantity.within;
    const double now = std::min(std::floor((point.epoch - first) / width), kMostPoints - 1);
    if (now != part) points.push_back({0, 0, 0, 0}), samples = 0, part = now;
    auto& mean = points.back();
    samples += point.samples;
    const double share = point.samples / samples;
    mean.epoch += share * (point.epoch - mean.epoch);
    mean.seconds += share * (point.seconds - mean.seconds);
    mean.value += share * (value - mean.value);
  }
  return points;
}

bool any_finite(const std::vector<Point>& points) {
  return std::ranges::any_of(points, [](const Point& point) { return std::isfinite(point.value); });
}

Curve curve_of(const RunRecord& run, std::size_t index, const Quantity& quantity) {
  Curve curve{index, run.label, scores(run.test, quantity), within_epochs(run, quantity),
              scores(run.validation, quantity)};
  const bool by_epochs = !any_finite(curve.train);  // an older run, or one without reports
  if (by_epochs) curve.train.clear();
  for (std::size_t k = 0; k < run.epochs.size(); ++k) {
    const auto& point = run.epochs[k];
    const double deviation = run.deviations.empty() ? 0 : quantity.scale * run.deviations[k].*quantity.test;
    curve.test.push_back({point.epoch, point.seconds, quantity.scale * point.*quantity.test, deviation});
    if (by_epochs) curve.train.push_back({point.epoch, point.seconds, quantity.scale * point.*quantity.train, 0});
  }
  std::ranges::stable_sort(curve.test, {}, &Point::epoch);
  return curve;
}

std::vector<Curve> curves_of(const std::vector<RunRecord>& runs, const Quantity& quantity) {
  std::vector<Curve> all;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (auto curve = curve_of(runs[i], i, quantity);
        any_finite(curve.test) || any_finite(curve.train) || any_finite(curve.validation))
      all.push_back(std::move(curve));
  return all;
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
};

Range values_of(const std::vector<Curve>& curves) {
  Range range;
  for (const auto& curve : curves)
    for (const auto* points : {&curve.test, &curve.train, &curve.validation})
      for (const auto& point : *points) range.add(point.value);
  return range;
}

/// Pixels around and between panels.
constexpr int kWidth = 1200, kLeft = 96, kRight = 24, kBetween = 72, kTop = 62, kPanel = 440, kAxis = 78;

/// A row of the figure: one quantity, over epochs and over seconds.
std::string row_of(Figure& figure, const std::vector<Curve>& curves, const Quantity& quantity, double top,
                   double bottom, const std::string& legend) {
  const auto file = quantity.name + ".dat";
  auto& table = figure.data[file];
  std::vector<std::string> over_epochs, over_seconds, legends;
  std::size_t blocks = 0;
  double most_epochs = 0;
  const auto add = [&](const std::vector<Point>& points, const std::string& style, const char* with) {
    if (!any_finite(points)) return;
    for (const auto& point : points) {
      most_epochs = std::max(most_epochs, point.epoch);
      table += fmt::format("{} {} {} {}\n", number(point.epoch), number(point.seconds), number(point.value),
                           number(point.deviation));
    }
    table += "\n\n";
    const bool deviates = std::ranges::any_of(points, [](const Point& point) { return point.deviation > 0; });
    for (const auto& [column, plots] : {std::pair{1, &over_epochs}, std::pair{2, &over_seconds}}) {
      if (deviates)
        plots->push_back(
            fmt::format("{} index {} using {}:3:4 with yerrorbars{} notitle", literal(file), blocks, column, style));
      plots->push_back(
          fmt::format("{} index {} using {}:3 with {}{} notitle", literal(file), blocks, column, with, style));
    }
    ++blocks;
  };
  for (const auto& curve : curves) {
    const bool one = curve.train.size() == 1;  // a line of one point cannot be seen
    add(curve.train, series_thin(curve.run) + (one ? " pt 7 ps 0.7" : ""), one ? "linespoints" : "lines");
  }
  for (const auto& curve : curves) add(curve.validation, series_dashed(curve.run), "lines");
  for (const auto& curve : curves) {
    add(curve.test, series_style(curve.run), "linespoints");
    legends.push_back(fmt::format("keyentry with {}{} title {}", any_finite(curve.test) ? "linespoints" : "lines",
                                  any_finite(curve.test) ? series_style(curve.run) : series_thin(curve.run),
                                  literal(curve.label)));
  }
  const auto range = values_of(curves);
  constexpr double kDecades = 8, kMargin = 1.15;
  std::string scale = "unset logscale\nset ytics autofreq\nset yrange [*:*]\n";
  if (quantity.may_be_logarithmic && range.low > 0 && range.high > kDecades * range.low)
    scale = fmt::format("set logscale y\nset ytics {}\nset yrange [{}:{}]\n", decade_tics(range.low, range.high),
                        number(range.low / kMargin), number(range.high * kMargin));
  constexpr double kFewEpochs = 4, kEachEpoch = 20;  // between them every epoch has a tic
  const auto panel = [&](int column, const char* axis, const std::vector<std::string>& plots, bool with_legend) {
    const double width = (kWidth - kLeft - kRight - kBetween) / 2.0, left = kLeft + column * (width + kBetween);
    return fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset xlabel {}\nset ylabel {}\n{}"
        "set xtics {}\nset xrange [0:*]\nplot {}{}\n",
        left / kWidth, (left + width) / kWidth, literal(axis), literal(column == 0 ? quantity.axis : ""),
        with_legend ? legend : "unset key\n",
        column == 0 && most_epochs >= kFewEpochs && most_epochs <= kEachEpoch ? "1" : "autofreq",
        fmt::join(plots, ", \\\n  "), with_legend ? fmt::format(", \\\n  {}", fmt::join(legends, ", \\\n  ")) : "");
  };
  return fmt::format("set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n{}{}{}", top, bottom, scale,
                     panel(0, "epochs", over_epochs, !legend.empty()),
                     panel(1, "training time [s]", over_seconds, false));
}

/// A figure with a row of panels per quantity that has numbers.
std::vector<Figure> panels(const std::vector<RunRecord>& runs, const std::string& name, const std::string& title,
                           const std::vector<Quantity>& quantities) {
  std::vector<std::pair<Quantity, std::vector<Curve>>> rows;
  std::size_t most = 0;  // the legend is that of the row with the most curves
  for (const auto& quantity : quantities)
    if (auto curves = curves_of(runs, quantity); !curves.empty()) {
      rows.emplace_back(quantity, std::move(curves));
      if (rows.back().second.size() > rows[most].second.size()) most = rows.size() - 1;
    }
  if (rows.empty()) return {};
  std::vector<std::string> labels;
  for (const auto& curve : rows[most].second) labels.push_back(curve.label);
  const bool one = runs.size() == 1;
  // Two panels share the legend, but gnuplot makes it no wider than one.
  auto legend = legend_below(labels, kWidth / 2 - 2 * kLeft / 3, 1);
  const int below = one ? kAxis : static_cast<int>(legend.bottom);
  Figure figure{name, kWidth, kTop + static_cast<int>(rows.size()) * (kPanel + kAxis) - kAxis + below, {}, {}};
  const auto head = !title.empty()       ? title
                    : labels.size() == 1 ? labels.front()
                                         : fmt::format("{} runs", labels.size());
  std::string script;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double top = kTop + static_cast<double>(k) * (kPanel + kAxis);
    script += row_of(figure, rows[k].second, rows[k].first, 1 - top / figure.height, 1 - (top + kPanel) / figure.height,
                     k == most && !one ? legend.key : "");
  }
  const bool validated = std::ranges::any_of(runs, [](const RunRecord& run) { return !run.validation.empty(); });
  const auto meaning = fmt::format("points: evaluations on the test split{}; thin lines: training",
                                   validated ? "; dashed: on the validation split" : "");
  figure.script = fmt::format("{}set format y '%g'\nset multiplot title {}\n{}unset multiplot\n", frame(),
                              literal(fmt::format("{}   ({})", head, meaning)), script);
  return {figure};
}

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

std::vector<Figure> curves(const std::vector<RunRecord>& runs, const std::string& title) {
  auto figures = panels(runs, kLoss.name, title, {kLoss});
  std::ranges::move(panels(runs, kAccuracy.name, title, {kAccuracy}), std::back_inserter(figures));
  return figures;
}

std::vector<Figure> curves_together(const std::vector<RunRecord>& runs, const std::string& name,
                                    const std::string& title) {
  return panels(runs, name, title, {kAccuracy, kLoss});
}

bool has_curves(const RunRecord& run) {
  return !curves_of({run}, kLoss).empty() || !curves_of({run}, kAccuracy).empty();
}

std::vector<Figure> cluster_figures(const RunRecord& run, const std::string& suffix) {
  std::vector<Figure> figures;
  if (run.waits) figures.push_back(draw(wait_matrix(run, suffix)));
  if (run.staleness) figures.push_back(draw(staleness_bars(run, suffix)));
  return figures;
}

}  // namespace troupe::plot
