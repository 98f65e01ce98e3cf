#include "experiment/plot/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::plot {
namespace {

// Okabe and Ito (2008) without yellow, which is invisible on white.
constexpr std::array kColours{"#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"};
constexpr std::array kPoints{7, 5, 9, 11, 13, 4, 6};

// Dark blue to yellow, with growing lightness.
constexpr std::string_view kPalette =
    "set palette defined (0 '#440154', 0.25 '#3b528b', 0.5 '#21918c', 0.75 '#5ec962', 1 '#fde725')\n";

/// gnuplot's list of tics: ('a' 0, 'b' 1, …)
std::string tics(const std::vector<std::string>& labels, const std::vector<double>& positions) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < labels.size(); ++i)
    parts.push_back(
        fmt::format("{} {}", literal(labels[i]), number(positions.empty() ? static_cast<double>(i) : positions[i])));
  return fmt::format("({})", fmt::join(parts, ", "));
}

std::size_t longest(const std::vector<std::string>& texts) {
  std::size_t most = 0;
  for (const auto& text : texts) most = std::max(most, columns_of(text));
  return most;
}

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

constexpr int kLetter = 9;  // pixels, of the width of a letter

/// Tics with names: side by side where they fit into `width` pixels, else turned.
struct Names {
  std::string line;   // the `set xtics rotate …` line, or nothing
  double height = 0;  // pixels that turned names need more
};
Names names_along(const std::vector<std::string>& places, int width) {
  constexpr double kSlope = 0.5, kMost = 170;  // sine of 30 degrees; pixels
  const auto letters = static_cast<double>(longest(places) * kLetter);
  if ((letters + kLetter) * static_cast<double>(places.size()) < width) return {};
  return {"set xtics rotate by 30 right\n", std::min(kSlope * letters, kMost)};
}

}  // namespace

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : "NaN"; }

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> points;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xF0)
      points.push_back(byte & 0x07U);
    else if (byte >= 0xE0)
      points.push_back(byte & 0x0FU);
    else if (byte >= 0xC0)
      points.push_back(byte & 0x1FU);
    else if (byte < 0x80)
      points.push_back(byte);
    else if (!points.empty())
      points.back() = points.back() << 6 | (byte & 0x3FU);
  }
  return points;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const auto c : code_points(text)) columns += is_wide(c) ? 2 : 1;
  return columns;
}

std::string decade_tics(double low, double high) {
  const auto first = static_cast<int>(std::floor(std::log10(low))),
             last = static_cast<int>(std::ceil(std::log10(high)));
  constexpr int kFine = 2, kMost = 8;  // decades: up to the first with three tics each, up to the second with one
  const int step = last - first <= kMost ? 1 : (last - first + kMost - 1) / kMost;
  std::vector<std::string> parts;
  for (int decade = first; decade <= last; decade += step)
    for (const int digit : {1, 2, 5})
      if (digit == 1 || high <= low * std::pow(10, kFine))
        parts.push_back(fmt::format("'{0:g}' {0:g}", digit * std::pow(10, decade)));
  return fmt::format("({})", fmt::join(parts, ", "));
}

std::string FileNames::take(const std::string& name) {
  auto candidate = name;
  for (int number = 2; !taken_.insert(candidate).second; ++number) candidate = fmt::format("{}-{}", name, number);
  return candidate;
}

std::string literal(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c == '\n' ? ' ' : c);
  return result + "'";
}

std::string series_style(std::size_t index) {
  constexpr std::array kDashes{"", " dt (8,3)", " dt (3,3)", " dt (8,3,2,3)"};
  const auto round = index / kColours.size();  // series of one colour differ in points and dashes
  return fmt::format(" lw 2.5 lc rgb '{}' pt {} ps 1.1{}", kColours[index % kColours.size()],
                     kPoints[(index + round) % kPoints.size()], kDashes[round % kDashes.size()]);
}

std::string series_dashed(std::size_t index) {
  return fmt::format(" lw 2.5 lc rgb '{}' dt (8,5)", kColours[index % kColours.size()]);
}

std::string series_thin(std::size_t index) {
  return fmt::format(" lw 1.2 lc rgb '#80{}'", kColours[index % kColours.size()] + 1);  // 80: half transparent
}

std::string series_fill(std::size_t index) {
  return fmt::format(" fill solid 0.9 border lc rgb '{0}' lc rgb '{0}'", kColours[index % kColours.size()]);
}

std::string palette() { return std::string(kPalette); }

std::string frame() {
  return "set border 3 lw 1 lc rgb '#606060'\n"
         "set tics nomirror out textcolor rgb '#303030'\n"
         "set grid lw 1 lc rgb '#d8d8d8'\n";
}

Legend legend_below(const std::vector<std::string>& labels, int width, int height) {
  constexpr int kSample = 70, kRow = 25, kAxis = 90;  // pixels; kAxis: tics and label above the legend
  const auto column = kLetter * static_cast<int>(longest(labels)) + kSample;
  const auto count = static_cast<int>(labels.size());
  const auto columns = std::clamp(width / column, 1, std::max(count, 1));
  const auto rows = (count + columns - 1) / columns;
  return {fmt::format("set key at screen 0.5, screen 0.012 center bottom horizontal maxcols {} Left reverse samplen 3 "
                      "spacing 1.15 noenhanced\n",
                      columns),
          rows, static_cast<double>(kAxis + kRow * rows) / height};
}

Figure draw(const HeatMap& map) {
  Figure figure{map.name, 0, 0, {}, {}};
  const auto columns = map.columns.size(), rows = map.rows.size();
  figure.width = static_cast<int>(std::clamp<std::size_t>(300 + 95 * columns, 640, 1800));
  figure.height = static_cast<int>(std::clamp<std::size_t>(190 + 62 * rows, 380, 1600));
  double low = map.from_zero ? 0 : INFINITY, high = -INFINITY;
  for (const auto& row : map.values)
    for (const double value : row)
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  if (!(high > low)) high = low + 1;  // all values alike, or none: any range will do

  constexpr double kScale = 150;  // pixels: the scale of colours, its tics and its label
  constexpr double kBox = 12;     // pixels: between the cells and the scale's box, which is twice as wide
  constexpr int kBeside = 110 + static_cast<int>(kScale);  // and tics and label of the rows
  const int cell = (figure.width - kBeside) / std::max(static_cast<int>(columns), 1);
  const auto names = names_along(map.columns, figure.width - kBeside);
  figure.height += static_cast<int>(names.height);
  std::size_t longest_text = 0;
  for (const auto& row : map.values)
    for (const double value : row)
      longest_text = std::max(longest_text, fmt::format(fmt::runtime(map.format), value).size());
  const bool has_texts = static_cast<int>(longest_text) * kLetter < cell;  // else they would run into each other

  std::string cells, labels;
  for (std::size_t y = 0; y < rows; ++y) {
    for (std::size_t x = 0; x < columns; ++x) {
      const double value = map.values[y][x];
      cells += fmt::format("{} {} {}\n", x, y, number(value));
      if (!std::isfinite(value) || !has_texts) continue;
      constexpr double kLight = 0.6;  // of the scale: above it black text is easier to read than white
      labels += fmt::format("set label {} at {},{} center front textcolor rgb '{}'\n",
                            literal(fmt::format(fmt::runtime(map.format), value)), x, y,
                            (value - low) / (high - low) > kLight ? "black" : "white");
    }
    cells += "\n";
  }
  figure.data[map.name + ".dat"] = cells;
  figure.script = fmt::format(
      "{}set title {}\nset xlabel {}\nset ylabel {}\nset cblabel {}\nset rmargin at screen {:.4f}\n"
      "set colorbox user origin screen {:.4f}, graph 0 size screen {:.4f}, graph 1\n"
      "unset key\nunset grid\nunset border\n"
      "set tics scale 0 textcolor rgb '#303030'\n{}set xtics {}\nset ytics {}\n"
      "set xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset cbrange [{}:{}]\n{}"
      // Not `with image`: it draws nothing where there is one row or one column.
      "plot {} using 1:2:(0.5):(0.5):3 with boxxyerror fill solid 1 noborder lc palette\n",
      kPalette, literal(map.title), literal(map.x_label), literal(map.y_label), literal(map.unit),
      1 - kScale / figure.width, 1 - (kScale - kBox) / figure.width, 2 * kBox / figure.width, names.line,
      tics(map.columns, {}), tics(map.rows, {}), static_cast<double>(columns) - 0.5, static_cast<double>(rows) - 0.5,
      number(low), number(high), labels, literal(map.name + ".dat"));
  return figure;
}

Figure draw(const LineChart& chart) {
  Figure figure{chart.name, 1000, 620, {}, {}};
  const double first = chart.positions.empty() ? 0 : chart.positions.front();
  const double last = chart.positions.empty() ? static_cast<double>(chart.places.size()) - 1 : chart.positions.back();
  std::vector<std::string> labels, plots;
  std::string table;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const auto& line = chart.lines[i];
    labels.push_back(line.label);
    // Shifted sideways, so that error bars do not hide each other.
    const double aside = 0.008 * (static_cast<double>(i) - 0.5 * static_cast<double>(chart.lines.size() - 1));
    const auto place = [&](std::size_t p) {
      const double at = chart.positions.empty() ? static_cast<double>(p) : chart.positions[p];
      return chart.logarithmic ? at * std::pow(last / first, aside) : at + aside * (last - first);
    };
    for (std::size_t p = 0; p < chart.places.size(); ++p)
      if (std::isfinite(line.values[p]))
        table += fmt::format("{} {} {}\n", number(place(p)), number(line.values[p]),
                             number(std::isfinite(line.deviations[p]) ? line.deviations[p] : 0));
    table += "\n\n";
    if (line.constant) {
      plots.push_back(fmt::format("{} index {} using 1:2 with lines{} title {}", literal(chart.name + ".dat"), i,
                                  series_dashed(i), literal(line.label)));
      continue;
    }
    plots.push_back(
        fmt::format("{0} index {1} using 1:2:3 with yerrorbars{2} notitle, {0} index {1} using 1:2 with "
                    "linespoints{2} title {3}",
                    literal(chart.name + ".dat"), i, series_style(i), literal(line.label)));
  }
  figure.data[chart.name + ".dat"] = table;
  const auto legend = legend_below(labels, figure.width, figure.height);
  constexpr double kRoom = 0.06;  // around the values, as a part of their range
  double low = INFINITY, high = -INFINITY;
  for (const auto& line : chart.lines)
    for (std::size_t p = 0; p < line.values.size(); ++p) {
      const double deviation = std::isfinite(line.deviations[p]) ? line.deviations[p] : 0;
      if (!std::isfinite(line.values[p])) continue;
      low = std::min(low, line.values[p] - deviation), high = std::max(high, line.values[p] + deviation);
    }
  const double height = high > low ? kRoom * (high - low) : std::max(kRoom * std::abs(high), 1e-3);
  // Room below would show times and counts that cannot be: below 0.
  const double bottom = low >= 0 && low < height ? 0 : low - height;
  const double room = kRoom * (last - first);
  const auto range = chart.logarithmic ? fmt::format("[{}:{}]", number(first / 1.2), number(last * 1.2))
                                       : fmt::format("[{}:{}]", number(first - room), number(last + room));
  figure.script = fmt::format(
      "{}{}set title {}\nset xlabel {}\nset ylabel {}\n{}set xtics {}\nset xrange {}\n"
      "set yrange [{}:{}]\nset bmargin at screen {:.3f}\nplot {}\n",
      frame(), legend.key, literal(chart.title), literal(chart.x_label), literal(chart.y_label),
      chart.logarithmic ? "set logscale x\n" : "", tics(chart.places, chart.positions), range, number(bottom),
      number(high + height), legend.bottom, fmt::join(plots, ", \\\n  "));
  return figure;
}

Figure draw(const BarChart& chart) {
  Figure figure{chart.name, 1000, 560, {}, {}};
  std::string table;
  for (std::size_t p = 0; p < chart.places.size(); ++p) {
    table += fmt::format("\"{}\"", chart.places[p]);
    for (const auto& series : chart.values) table += fmt::format(" {}", number(series[p]));
    table += "\n";
  }
  figure.data[chart.name + ".dat"] = table;
  std::vector<std::string> plots;
  for (std::size_t s = 0; s < chart.series.size(); ++s)
    plots.push_back(fmt::format("{} using {}:xtic(1) title {}{}", s == 0 ? literal(chart.name + ".dat") : "''", s + 2,
                                literal(chart.series[s]), series_fill(s)));
  const auto legend = legend_below(chart.series, figure.width, figure.height);
  const auto names = names_along(chart.places, figure.width - 100);
  figure.script = fmt::format(
      "{}{}set title {}\nset xlabel {}\nset ylabel {}\n{}set style data histograms\nset style histogram clustered gap "
      "1\n"
      "set boxwidth 0.9\nunset grid\nset grid ytics lw 1 lc rgb '#d8d8d8'\nset yrange [0:*]\nset datafile separator ' "
      "'\n"
      "set bmargin at screen {:.3f}\nplot {}\n",
      frame(), legend.key, literal(chart.title), literal(chart.x_label), literal(chart.y_label), names.line,
      legend.bottom + names.height / figure.height, fmt::join(plots, ", \\\n  "));
  return figure;
}

Figure draw(const ValueChart& chart) {
  const auto places = chart.places.size();
  Figure figure{chart.name, static_cast<int>(std::clamp<std::size_t>(240 + 130 * places, 640, 1600)), 560, {}, {}};
  double low = INFINITY, high = -INFINITY;
  std::string table, labels;
  for (std::size_t p = 0; p < places; ++p) {
    const double value = chart.values[p], deviation = std::isfinite(chart.deviations[p]) ? chart.deviations[p] : 0;
    if (!std::isfinite(value)) continue;
    low = std::min(low, value - deviation), high = std::max(high, value + deviation);
    const auto colour = std::stol(kColours[p % kColours.size()] + 1, nullptr, 16);
    table += fmt::format("{} {} {} {}\n", p, number(value), number(deviation), colour);
    auto text = fmt::format(fmt::runtime(chart.format), value);
    const auto* const deviation_format = chart.format == "{:.3g}" ? "{:.2g}" : chart.format.c_str();
    if (deviation > 0) text += " ± " + fmt::format(fmt::runtime(deviation_format), deviation);
    labels += fmt::format("set label {} at {},{} center offset 0,1 front textcolor rgb '#303030'\n", literal(text), p,
                          number(value + deviation));
  }
  if (chart.bars) low = std::min(low, 0.0);
  // Room for the text above; equal values still need a range.
  const double span = high > low ? high - low : std::max(std::abs(high), 1e-3) * (chart.bars ? 1 : 0.02);
  constexpr double kRoom = 0.16;
  figure.data[chart.name + ".dat"] = table;
  const auto names = names_along(chart.places, figure.width - 100);
  const auto file = literal(chart.name + ".dat");
  // Not `with yerrorbars`: these leave a gap for a point.
  const auto deviations =
      file + " using 1:($2-$3):(0):(2*$3) with vectors heads size graph 0.01,90 lw 1.8 lc rgb '#303030'";
  figure.script = fmt::format(
      "{}unset key\nset title {}\nset xlabel {}\nset ylabel {}\n{}set xtics {}\nset xrange [-0.6:{}]\n"
      "set yrange [{}:{}]\nunset grid\nset grid ytics lw 1 lc rgb '#d8d8d8'\nset style fill solid 0.9\n{}"
      "plot {}, \\\n  {}\n",
      frame(), literal(chart.title), literal(chart.x_label), literal(chart.y_label), names.line, tics(chart.places, {}),
      static_cast<double>(places) - 0.4, number(chart.bars && low >= 0 ? 0 : low - kRoom * span),
      number(high + kRoom * span), labels,
      chart.bars ? file + " using 1:2:(0.6):4 with boxes lc rgb variable" : deviations,
      chart.bars ? deviations : file + " using 1:2:4 with points pt 7 ps 2 lc rgb variable");
  return figure;
}

}  // namespace troupe::plot
