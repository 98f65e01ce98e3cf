#include "apps/reports/confusion_report.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::apps {
namespace {

constexpr std::size_t kMostClasses = 20;  // in a table or a picture

using experiment::ConfusionMatrix;
using Classes = std::vector<ConfusionMatrix::ClassCount>;

/// All classes in their order, or of many the worst.
Classes shown_classes(const ConfusionMatrix& matrix) {
  auto all = matrix.classes();
  return all.size() <= kMostClasses ? all : matrix.worst(kMostClasses);
}

std::string which(const ConfusionMatrix& matrix) {
  const auto count = matrix.classes().size();
  return count <= kMostClasses ? std::string() : fmt::format("the {} worst of {} classes", kMostClasses, count);
}

std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const auto& text : texts) width = std::max(width, plot::columns_of(text));
  return width;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, plot::columns_of(text)), ' ');
  return right ? space + text : text + space;
}

std::string table_of_classes(const ConfusionMatrix& matrix, const ClassNames& names, const Classes& classes) {
  std::vector<std::string> labels{"class"};
  for (const auto& c : classes) labels.push_back(class_name(names, c.label));
  const auto width = widest(labels);
  auto text = fmt::format("{}   samples   accuracy   most often taken for\n", padded("class", width, false));
  for (const auto& c : classes) {
    const auto other = matrix.most_often_taken_for(c.label);
    text += fmt::format("{} {:>9} {:>8.2f} %", padded(class_name(names, c.label), width, false), c.samples,
                        100 * c.accuracy());
    if (other.samples > 0) text += fmt::format("   {} ({})", class_name(names, other.prediction), other.samples);
    text += "\n";
  }
  return text;
}

std::string table_of_pairs(const ConfusionMatrix& matrix, const ClassNames& names, const Classes& classes) {
  std::vector<std::string> labels, cells;
  for (const auto& c : classes) labels.push_back(class_name(names, c.label));
  cells = labels;
  for (const auto& row : classes)
    for (const auto& column : classes) cells.push_back(fmt::format("{}", matrix.count(row.label, column.label)));
  const auto first = widest(labels), width = widest(cells) + 1;
  if (first + width * classes.size() > 120) return {};
  auto text = fmt::format("\ntrue class (rows), prediction (columns)\n{}", std::string(first, ' '));
  for (const auto& label : labels) text += padded(label, width, true);
  for (std::size_t row = 0; row < classes.size(); ++row) {
    text += "\n" + padded(labels[row], first, false);
    for (const auto& column : classes)
      text += padded(fmt::format("{}", matrix.count(classes[row].label, column.label)), width, true);
  }
  return text + "\n";
}

}  // namespace

std::string class_name(const ClassNames& names, std::int32_t label) {
  const auto index = static_cast<std::size_t>(label);
  return label >= 0 && index < names.size() ? names[index] : fmt::format("{}", label);
}

std::string confusion_text(const ConfusionMatrix& matrix, const ClassNames& names) {
  const auto classes = shown_classes(matrix);
  const auto some = which(matrix);
  auto text = table_of_classes(matrix, names, classes);
  return some.empty() ? text + table_of_pairs(matrix, names, classes) : some + "\n" + text;
}

nlohmann::ordered_json confusion_json(const ConfusionMatrix& matrix, const ClassNames& names) {
  using Json = nlohmann::ordered_json;
  Json classes = Json::array(), cells = Json::array();
  for (const auto& c : matrix.classes())
    classes.push_back(
        {{"class", c.label}, {"name", class_name(names, c.label)}, {"samples", c.samples}, {"accuracy", c.accuracy()}});
  for (const auto& cell : matrix.cells()) cells.push_back({cell.label, cell.prediction, cell.samples});
  return {{"classes", std::move(classes)}, {"confusion", std::move(cells)}};
}

std::vector<plot::Figure> confusion_figures(const ConfusionMatrix& matrix, const ClassNames& names,
                                            const std::string& title) {
  const auto classes = shown_classes(matrix);
  const auto some = which(matrix);
  const auto full = some.empty() ? title : fmt::format("{}: {}", title, some);
  plot::HeatMap map;
  map.name = "confusion";
  map.title = full;
  map.x_label = "prediction";
  map.y_label = "true class";
  map.unit = "of the true class [%]";
  map.format = "{:.0f}";
  map.from_zero = true;
  plot::ValueChart chart;
  chart.name = "class-accuracy";
  chart.title = full;
  chart.x_label = "class";
  chart.y_label = "accuracy [%]";
  chart.format = "{:.1f}";
  for (const auto& row : classes) {
    map.columns.push_back(class_name(names, row.label));
    auto& values = map.values.emplace_back();
    for (const auto& column : classes)
      values.push_back(100 * static_cast<double>(matrix.count(row.label, column.label)) /
                       static_cast<double>(row.samples));
    chart.values.push_back(100 * row.accuracy());
    chart.deviations.push_back(0);
  }
  map.rows = chart.places = map.columns;
  return {plot::draw(map), plot::draw(chart)};
}

}  // namespace troupe::apps
