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
  bool zero_is_nothing;     // an accuracy of 0 throughout was not measured
};

const Quantity kLoss{
    "loss", "loss", &EpochPoint::train_loss, &EpochPoint::test_loss, &TrainPoint::loss, &ScorePoint::loss, 1,
    true,   false};
const Quantity kAccuracy{"accuracy",
                         "accuracy [%]",
                         &EpochPoint::train_accuracy,
                         &EpochPoint::test_accuracy,
                         &TrainPoint::accuracy,
                         &ScorePoint::accuracy,
                         100,
                         false,
                         true};

struct Over {
  Axis axis;
  std::string name, label;
};
const std::vector<Over>& all_axes() {
  static const std::vector<Over> all{{Axis::epochs, "epochs", "epochs"},
                                     {Axis::seconds, "seconds", "training time [s]"},
                                     {Axis::samples, "samples", "samples seen"}};
  return all;
}

struct Point {
  double epoch, seconds, value, deviation;

  [[nodiscard]] double at(Axis axis, double epoch_samples) const {
    if (axis == Axis::epochs) return epoch;
    if (axis == Axis::seconds) return seconds;
    return epoch_samples > 0 ? epoch * epoch_samples : NAN;
  }
};

/// The curves of one run: evaluations on two splits, and training.
struct Curve {
  std::size_t run = 0;
  std::string label;
  double epoch_samples = 0;
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

void drop_unmeasured(std::vector<Point>& points) {
  if (std::ranges::none_of(points, [](const Point& point) { return point.value > 0; })) points.clear();
}

Curve curve_of(const RunRecord& run, std::size_t index, const Quantity& quantity) {
  Curve curve{index,
              run.label,
              run.epoch_samples,
              scores(run.test, quantity),
              within_epochs(run, quantity),
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
  if (quantity.zero_is_nothing)
    for (auto* points : {&curve.test, &curve.train, &curve.validation}) drop_unmeasured(*points);
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
constexpr int kLeft = 112, kRight = 24, kBetween = 72, kTop = 62, kPanel = 440, kAxis = 78;
constexpr int kPanelWidth = 504, kOnlyPanelWidth = 780;

int panel_width(std::size_t panels) { return panels == 1 ? kOnlyPanelWidth : kPanelWidth; }

/// Panels side by side, one per axis, with the same curves.
class Row {
 public:
  Row(const std::vector<Axis>& over, const Quantity& quantity, const std::vector<Curve>& curves)
      : quantity_(quantity), plots_(over.size()) {
    for (const auto axis : over) axes_.push_back(scaled(axis, curves));
    for (const auto& curve : curves) {
      const bool one = curve.train.size() == 1;  // a line of one point cannot be seen
      add(curve, curve.train, series_thin(curve.run) + (one ? " pt 7 ps 0.7" : ""), one ? "linespoints" : "lines");
    }
    for (const auto& curve : curves) add(curve, curve.validation, series_dashed(curve.run), "lines");
    for (const auto& curve : curves) {
      add(curve, curve.test, series_style(curve.run), "linespoints");
      const bool tested = any_finite(curve.test);
      legends_.push_back(fmt::format("keyentry with {}{} title {}", tested ? "linespoints" : "lines",
                                     tested ? series_style(curve.run) : series_thin(curve.run), literal(curve.label)));
    }
    scale_ = scale_of(values_of(curves));
  }
  [[nodiscard]] const std::string& table() const { return table_; }

  /// `top`, `bottom`: of the panels, as fractions of the figure, which is `width` pixels wide. An empty `legend`: none is drawn.
  [[nodiscard]] std::string script(double top, double bottom, int width, const std::string& legend) const {
    auto text = fmt::format("set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n{}", top, bottom, scale_);
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      const double left = kLeft + static_cast<double>(k) * (panel_width(axes_.size()) + kBetween);
      text += fmt::format("set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n", left / width,
                          (left + panel_width(axes_.size())) / width);
      text += panel(k, k == 0 ? legend : "");
    }
    return text;
  }

 private:
  struct ScaledAxis {
    Axis axis = Axis::epochs;
    std::string label;
    double unit = 1, most = 0;
  };

  /// Large numbers of samples are in thousands or millions: tics have room for a few digits.
  static ScaledAxis scaled(Axis axis, const std::vector<Curve>& curves) {
    ScaledAxis scaled{axis, all_axes()[static_cast<std::size_t>(axis)].label};
    for (const auto& curve : curves)
      for (const auto* points : {&curve.test, &curve.train, &curve.validation})
        for (const auto& point : *points)
          if (const double at = point.at(axis, curve.epoch_samples); at > scaled.most) scaled.most = at;
    constexpr double kThousand = 1e3, kMillion = 1e6;
    if (axis != Axis::samples || scaled.most < 10 * kThousand) return scaled;
    scaled.unit = scaled.most < 2 * kMillion ? kThousand : kMillion;
    scaled.label += scaled.unit == kMillion ? " [millions]" : " [thousands]";
    return scaled;
  }

  void add(const Curve& curve, const std::vector<Point>& points, const std::string& style, const char* with) {
    if (!any_finite(points)) return;
    for (const auto& point : points) {
      for (const auto& axis : axes_) table_ += number(point.at(axis.axis, curve.epoch_samples) / axis.unit) + " ";
      table_ += fmt::format("{} {}\n", number(point.value), number(point.deviation));
    }
    table_ += "\n\n";
    const bool deviates = std::ranges::any_of(points, [](const Point& point) { return point.deviation > 0; });
    const auto file = literal(quantity_.name + ".dat");
    const auto value = axes_.size() + 1;  // its column
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      if (deviates)
        plots_[k].push_back(fmt::format("{} index {} using {}:{}:{} with yerrorbars{} notitle", file, blocks_, k + 1,
                                        value, value + 1, style));
      plots_[k].push_back(
          fmt::format("{} index {} using {}:{} with {}{} notitle", file, blocks_, k + 1, value, with, style));
    }
    ++blocks_;
  }

  [[nodiscard]] std::string scale_of(const Range& range) const {
    constexpr double kDecades = 8, kMargin = 1.15;
    if (quantity_.may_be_logarithmic && range.low > 0 && range.high > kDecades * range.low)
      return fmt::format("set logscale y\nset ytics {}\nset yrange [{}:{}]\n", decade_tics(range.low, range.high),
                         number(range.low / kMargin), number(range.high * kMargin));
    return "unset logscale\nset ytics autofreq\nset yrange [*:*]\n";
  }

  [[nodiscard]] std::string panel(std::size_t k, const std::string& legend) const {
    constexpr double kFewEpochs = 4, kEachEpoch = 20;  // between them every epoch has a tic
    const auto& axis = axes_[k];
    const bool each = axis.axis == Axis::epochs && axis.most >= kFewEpochs && axis.most <= kEachEpoch;
    return fmt::format("set xlabel {}\nset ylabel {}\n{}set xtics {}\nset xrange [0:*]\nplot {}{}\n",
                       literal(axis.label), literal(k == 0 ? quantity_.axis : ""),
                       legend.empty() ? "unset key\n" : legend, each ? "1" : "autofreq",
                       fmt::join(plots_[k], ", \\\n  "),
                       legend.empty() ? "" : fmt::format(", \\\n  {}", fmt::join(legends_, ", \\\n  ")));
  }

  const Quantity& quantity_;
  std::vector<ScaledAxis> axes_;
  std::string table_, scale_;
  std::vector<std::vector<std::string>> plots_;  // [axes]
  std::vector<std::string> legends_;
  std::size_t blocks_ = 0;  // of the table
};

/// A figure with a row of panels per quantity that has numbers.
std::vector<Figure> panels(const std::vector<RunRecord>& runs, const std::string& name, const std::string& title,
                           const std::vector<Quantity>& quantities, const std::vector<Axis>& over) {
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
  // The panels share the legend, but gnuplot makes it no wider than one, and takes columns for wider than it draws them.
  const int panel = panel_width(over.size()), count = static_cast<int>(over.size());
  const int width = kLeft + count * panel + (count - 1) * kBetween + kRight;
  auto legend = legend_below(labels, panel * 9 / 10, 1);
  const int below = one ? kAxis : static_cast<int>(legend.bottom);
  Figure figure{name, width, kTop + static_cast<int>(rows.size()) * (kPanel + kAxis) - kAxis + below, {}, {}};
  const auto head = !title.empty()       ? title
                    : labels.size() == 1 ? labels.front()
                                         : fmt::format("{} runs", labels.size());
  std::string script;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double top = kTop + static_cast<double>(k) * (kPanel + kAxis);
    const Row row(over, rows[k].first, rows[k].second);
    figure.data[rows[k].first.name + ".dat"] = row.table();
    script += row.script(1 - top / figure.height, 1 - (top + kPanel) / figure.height, width,
                         k == most && !one ? legend.key : "");
  }
  const auto drawn = [&](std::vector<Point> Curve::*split) {
    return std::ranges::any_of(rows, [&](const auto& row) {
      return std::ranges::any_of(row.second, [&](const Curve& curve) { return any_finite(curve.*split); });
    });
  };
  const auto meaning = fmt::format("points: evaluations on the test split{}{}",
                                   drawn(&Curve::validation) ? "; dashed: on the validation split" : "",
                                   drawn(&Curve::train) ? "; thin lines: training" : "");
  figure.script = fmt::format("{}set format y '%g'\nset multiplot title {}\n{}unset multiplot\n", frame(),
                              literal(fmt::format("{}   ({})", head, meaning)), script);
  return {figure};
}

}  // namespace

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& axis : all_axes()) all.push_back(axis.name);
    return all;
  }();
  return names;
}

Axis axis_of(std::string_view name) { return std::ranges::find(all_axes(), name, &Over::name)->axis; }

std::vector<Figure> curves(const std::vector<RunRecord>& runs, const std::string& title,
                           const std::vector<Axis>& over) {
  auto figures = panels(runs, kLoss.name, title, {kLoss}, over);
  std::ranges::move(panels(runs, kAccuracy.name, title, {kAccuracy}, over), std::back_inserter(figures));
  return figures;
}

std::vector<Figure> curves_together(const std::vector<RunRecord>& runs, const std::string& name,
                                    const std::string& title) {
  return panels(runs, name, title, {kAccuracy, kLoss}, {Axis::epochs, Axis::seconds});
}

bool has_curves(const RunRecord& run) {
  return !curves_of({run}, kLoss).empty() || !curves_of({run}, kAccuracy).empty();
}

}  // namespace troupe::plot
