#include "apps/reports/prediction_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::apps {

std::vector<RankedClass> top_classes(std::span<const float> outputs, std::size_t most, nn::Loss loss) {
  std::vector<std::int32_t> order(outputs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto output = [&](std::int32_t label) { return static_cast<double>(outputs[static_cast<std::size_t>(label)]); };
  const auto count = std::min(most, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::int32_t a, std::int32_t b) { return output(a) != output(b) ? output(a) > output(b) : a < b; });
  std::vector<RankedClass> ranked;
  const bool probabilities = loss == nn::Loss::softmax_cross_entropy;
  const double greatest = order.empty() ? 0 : output(order.front());
  double sum = 0;
  for (const float value : outputs) sum += std::exp(static_cast<double>(value) - greatest);
  for (std::size_t i = 0; i < count; ++i)
    ranked.push_back({order[i], probabilities ? std::exp(output(order[i]) - greatest) / sum : output(order[i])});
  return ranked;
}

std::string prediction_text(const std::vector<Prediction>& predictions, const ClassNames& names) {
  std::string text;
  for (const auto& prediction : predictions) {
    if (prediction.error) continue;
    text += prediction.file + "\n";
    for (const auto& c : prediction.classes)
      text += fmt::format("  {:>8.4f}  {}\n", c.score, class_name(names, c.label));
  }
  return text;
}

std::string prediction_json(const std::vector<Prediction>& predictions, const ClassNames& names) {
  using Json = nlohmann::ordered_json;
  std::string text;
  for (const auto& prediction : predictions) {
    Json top = Json::array();
    for (const auto& c : prediction.classes)
      top.push_back({{"class", c.label}, {"name", class_name(names, c.label)}, {"score", c.score}});
    Json line{{"file", prediction.file}};
    if (prediction.error)
      line["error"] = prediction.error->message;
    else
      line["top"] = std::move(top);
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";  // names of files need not be UTF-8
  }
  return text;
}

}  // namespace troupe::apps
