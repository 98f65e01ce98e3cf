/// A picture for gnuplot: its script and the script's data. Pure functions. Colours: Okabe and Ito's, which people with colour blindness
/// can tell apart; lines also differ by their points; the scale of heat maps grows in lightness.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::plot {

struct Figure {
  std::string name;  // of the file, without extension
  int width = 1100;  // pixels
  int height = 620;
  std::map<std::string, std::string> data;  // file name → contents; files beside the script
  std::string script;                       // without terminal and output
};

/// Makes file names unique: "a", then "a-2", "a-3", …, because figures with one name would overwrite each other.
class FileNames {
 public:
  [[nodiscard]] std::string take(const std::string& name);

 private:
  std::set<std::string> taken_;
};

/// 'text', which gnuplot reads literally.
[[nodiscard]] std::string literal(std::string_view text);

/// The characters of UTF-8 text.
[[nodiscard]] std::vector<char32_t> code_points(std::string_view text);

/// Columns of `text`: a Chinese character or an emoji takes two.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// Line, point and colour of the series number `index`: " lw 2 lc rgb … pt …".
[[nodiscard]] std::string series_style(std::size_t index);

/// A dashed line in the colour of that series, without points.
[[nodiscard]] std::string series_dashed(std::size_t index);

/// A thin line in the colour of that series, for a second curve of it.
[[nodiscard]] std::string series_thin(std::size_t index);

/// A filled box in the colour of that series.
[[nodiscard]] std::string series_fill(std::size_t index);

/// "NaN" for a number that is not finite.
[[nodiscard]] std::string number(double value);

/// gnuplot's list of tics for a logarithmic axis from `low` to `high`, both above 0: 1, 2, 5 of each decade, or fewer where there are many.
[[nodiscard]] std::string decade_tics(double low, double high);

/// The palette of colours by value: dark to light.
[[nodiscard]] std::string palette();

/// Borders, tics and grid of all figures.
[[nodiscard]] std::string frame();

/// The position of a legend with these labels: below the panels of a figure of this height [pixels], in as many rows as it needs. gnuplot
/// makes it no wider than the panel that draws it: `width` pixels.
struct Legend {
  std::string key;  // the `set key …` line
  int rows = 0;
  double bottom = 0;  // bottom margin of the panels, as a fraction of the figure
};
[[nodiscard]] Legend legend_below(const std::vector<std::string>& labels, int width, int height);

/// Cells with values: rows from the top, columns from the left; NaN leaves a cell empty. `format`: fmt format of a cell's text.
struct HeatMap {
  std::string name, title, x_label, y_label, unit;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> values;  // [rows][columns]
  std::string format = "{:.3g}";
  bool from_zero = false;  // the scale of colours begins at 0
};
[[nodiscard]] Figure draw(const HeatMap& map);

/// One value per place and series, with deviations as error bars; NaN: no value.
struct LineChart {
  struct Line {
    std::string label;
    std::vector<double> values, deviations;  // [places]
    bool constant = false;                   // its runs do not have the varied key: dashed, without points
  };
  std::string name, title, x_label, y_label;
  std::vector<std::string> places;  // labels along the axis
  std::vector<double> positions;    // empty: equal distances
  bool logarithmic = false;         // positions grow by factors
  std::vector<Line> lines;
};
[[nodiscard]] Figure draw(const LineChart& chart);

/// Adjacent boxes: for each place, one of each series.
struct BarChart {
  std::string name, title, x_label, y_label;
  std::vector<std::string> places, series;
  std::vector<std::vector<double>> values;  // [series][places]
};
[[nodiscard]] Figure draw(const BarChart& chart);

/// One value per place with its deviation (NaN or 0: none), and the value as text above it. NaN leaves a place empty.
struct ValueChart {
  std::string name, title, x_label, y_label;
  std::vector<std::string> places;
  std::vector<double> values, deviations;  // [places]
  std::string format = "{:.3g}";
  bool bars = true;  // from 0; false: points, for values whose differences are small beside them (accuracies)
};
[[nodiscard]] Figure draw(const ValueChart& chart);

}  // namespace troupe::plot
