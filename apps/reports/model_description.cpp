#include "apps/reports/model_description.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace troupe::apps {
namespace {

constexpr double kFullByte = 255;

std::string extents(const data::ImageShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

std::string numbers(const std::vector<double>& values) { return fmt::format("{:.6g}", fmt::join(values, " ")); }

}  // namespace

std::map<std::string, std::string> describe_preprocessing(const data::Preprocess& preprocess) {
  const auto source = preprocess.source_shape();
  const auto plane = static_cast<std::size_t>(source.height * source.width);
  std::vector<double> means, deviations, image;
  bool by_pixel = false;
  for (std::size_t c = 0; c < preprocess.scale().size(); ++c) {
    const double deviation = 1 / (kFullByte * static_cast<double>(preprocess.scale()[c]));
    const auto biases = preprocess.bias().subspan(c * plane, plane);
    by_pixel = by_pixel || std::ranges::any_of(biases, [&](float bias) { return bias != biases.front(); });
    for (const float bias : biases) image.push_back(0 - static_cast<double>(bias) * deviation);
    const auto pixels = std::span(image).subspan(c * plane, plane);
    means.push_back(std::accumulate(pixels.begin(), pixels.end(), 0.0) / static_cast<double>(plane));
    deviations.push_back(deviation);
  }
  std::map<std::string, std::string> texts{
      {"preprocessing", "input = (byte / 255 - mean) / deviation; the crop is from the middle of the image"},
      {"image", extents(source)},
      {"crop", extents(preprocess.output_shape())},
      {"mean", numbers(means)},
      {"deviation", numbers(deviations)}};
  if (by_pixel) texts["mean_image"] = numbers(image);
  return texts;
}

std::map<std::string, std::string> describe_model(const experiment::RunSpec& spec) {
  std::map<std::string, std::string> texts;
  if (spec.source.test) {
    texts = describe_preprocessing(spec.source.test->preprocess());
    const auto names = spec.source.test->dataset().class_names();
    if (!names.empty())
      texts["classes"] = nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  texts["model"] = spec.graph->name();
  texts["dataset"] = spec.settings->data.name;
  return texts;
}

}  // namespace troupe::apps
