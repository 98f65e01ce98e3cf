#include "experiment/plot/sweep_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/text/plural.hpp"
#include "experiment/plot/grid_figures.hpp"

namespace troupe::plot {
namespace {

constexpr double kBelow = -0.09;  // where a line crosses the axis of a parameter that its trial does not have
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

std::string unquoted(const std::string& toml) {
  return toml.size() >= 2 && toml.front() == '"' ? toml.substr(1, toml.size() - 2) : toml;
}

std::string label_at(const std::string& text, std::size_t x, double y, const char* where) {
  return fmt::format("set label {} at {},{} {} front textcolor rgb '#303030'\n", literal(text), x, number(y), where);
}

/// Labels of an axis: its ends where their lines cross it, or its choices, and its name above.
std::string axis_labels(const sweep::Space& space, std::size_t x) {
  const auto& p = space[x];
  auto text = label_at(p.key, x, 1.1, "center");
  if (p.kind != sweep::Kind::choice) {
    text += label_at(fmt::format("{:g}", p.low), x, space.position(x, p.low), "left offset 0.5,0");
    return p.high > p.low
               ? text + label_at(fmt::format("{:g}", p.high), x, space.position(x, p.high), "left offset 0.5,0")
               : text;
  }
  const auto count = static_cast<double>(p.choices.size());
  for (std::size_t choice = 0; choice < p.choices.size(); ++choice)
    text += label_at(unquoted(p.choices[choice]), x, (static_cast<double>(choice) + 0.5) / count, "left offset 0.5,0");
  return text;
}

double place_of(const sweep::Space& space, std::size_t i, const std::optional<double>& value) {
  if (!value) return kBelow;
  if (space[i].kind != sweep::Kind::choice) return space.position(i, *value);
  return (*value + 0.5) / static_cast<double>(space[i].choices.size());
}

std::vector<Figure> parallel(const sweep::Record& record, const std::string& name, const Unit& unit) {
  const sweep::Space space(record.parameters);
  Bounds bounds;
  std::vector<const sweep::TrialRecord*> trials;  // the best one last: on top
  for (const auto number : record.ranking)
    if (const auto score = sweep::score_of(record.trials[number])) {
      bounds.take(unit.factor * *score);
      trials.insert(trials.begin(), &record.trials[number]);
    }
  if (trials.empty()) return {};
  const auto axes = space.size() + 1;
  Figure figure{"parallel", static_cast<int>(std::clamp<std::size_t>(200 + 190 * axes, 700, 1800)), 620, {}, {}};
  std::string stopped, whole, labels;
  for (const auto* trial : trials) {
    const double score = unit.factor * *sweep::score_of(*trial);
    const auto point = space.point_of(trial->settings);
    std::string rows;
    for (std::size_t i = 0; i < space.size(); ++i)
      rows += fmt::format("{} {} {}\n", i, number(place_of(space, i, point[i])), number(score));
    rows += fmt::format("{} {} {}\n\n", space.size(), number(bounds.place(score)), number(score));
    (trial->scores.size() == record.rungs.size() ? whole : stopped) += rows;
  }
  std::string arrows;
  for (std::size_t x = 0; x < axes; ++x)
    arrows += fmt::format("set arrow from {0},0 to {0},1 nohead front lw 1.2 lc rgb '#606060'\n", x);
  for (std::size_t i = 0; i < space.size(); ++i) labels += axis_labels(space, i);
  labels += label_at(unit.label, space.size(), 1.1, "center") +
            label_at(fmt::format("{:.4g}", bounds.low), space.size(), 0, "left offset 0.5,0") +
            label_at(fmt::format("{:.4g}", bounds.high), space.size(), 1, "left offset 0.5,0");
  std::string plots;
  const auto add = [&](const char* file, const std::string& data, const char* style) {
    if (data.empty()) return;
    figure.data[file] = data;
    plots +=
        fmt::format("{}{} using 1:2:3 with lines {} lc palette", plots.empty() ? "" : ", \\\n  ", literal(file), style);
  };
  add("parallel-stopped.dat", stopped, "lw 0.8");
  add("parallel-whole.dat", whole, "lw 2.4");
  // A palette that spans one value has no colours.
  const double high = bounds.high > bounds.low ? bounds.high : bounds.low + 1e-9 + std::abs(bounds.low) * 1e-6;
  figure.script = fmt::format(
      "{}unset key\nunset border\nunset tics\nunset grid\nunset colorbox\nset title {} offset 0,1\nset xrange "
      "[-0.3:{}]\n"
      "set yrange [{}:1.14]\nset cbrange [{}:{}]\n{}{}plot {}\n",
      palette(), literal(fmt::format("{}: {} trials; thick: trained to their end", name, trials.size())),
      number(static_cast<double>(space.size()) + 0.5), kBelow - 0.03, number(bounds.low), number(high), arrows, labels,
      plots);
  return {figure};
}

std::vector<Figure> best(const sweep::Record& record, const std::string& name, const Unit& unit) {
  std::string scores, curve;
  for (const auto& one : sweep::history(record)) {
    if (one.score) scores += fmt::format("{} {} {}\n", one.epochs, number(unit.factor * *one.score), one.rung);
    curve += fmt::format("{} {}\n", one.epochs, number(one.best ? unit.factor * *one.best : kNone));
  }
  if (scores.empty()) return {};
  Figure figure{"best", 1100, 620, {}, {}};
  figure.data["best-scores.dat"] = scores;
  figure.data["best.dat"] = curve;
  std::vector<std::string> names{"best so far"};
  std::string plots = fmt::format("'best.dat' using 1:2 with steps title {}{}", literal(names[0]), series_thin(6));
  for (std::size_t rung = 0; rung < record.rungs.size(); ++rung) {
    names.push_back("after " + core::counted(static_cast<std::uint64_t>(record.rungs[rung]), "epoch"));
    plots += fmt::format(", \\\n  'best-scores.dat' using ($3=={} ? $1 : NaN):2 with points title {}{}", rung,
                         literal(names.back()), series_style(rung));
  }
  const auto legend = legend_below(names, figure.width, figure.height);
  figure.script = fmt::format(
      "{}{}set title {}\nset xlabel 'epochs trained, over all trials'\nset ylabel {}\nset bmargin at screen "
      "{:.3f}\nplot "
      "{}\n",
      frame(), legend.key, literal(name), literal(unit.label), legend.bottom, plots);
  return {figure};
}

std::vector<Figure> importance_figure(const sweep::Record& record, const std::string& name) {
  if (record.importance.empty()) return {};
  ValueChart chart;
  chart.name = "importance";
  chart.title = fmt::format("{}: what decides", name);
  chart.y_label = "share of the variance of the ranks [%]";
  chart.format = "{:.0f}";
  for (std::size_t i = 0; i < record.parameters.size(); ++i) {
    chart.places.push_back(record.parameters[i].key);
    chart.values.push_back(100 * record.importance[i]);
    chart.deviations.push_back(0);
  }
  return {draw(chart)};
}

}  // namespace

std::vector<Figure> sweep_figures(const sweep::Record& record, const std::string& name) {
  const auto unit = unit_of(record.metric);
  auto figures = parallel(record, name, unit);
  for (auto& figure : best(record, name, unit)) figures.push_back(std::move(figure));
  for (auto& figure : importance_figure(record, name)) figures.push_back(std::move(figure));
  return figures;
}

}  // namespace troupe::plot
