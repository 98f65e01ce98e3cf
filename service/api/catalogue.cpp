#include <array>
#include <charconv>

#include <fmt/format.h>

#include "core/optimizers/optimizers.hpp"
#include "nn/layer_types.hpp"
#include "nn/zoo/models.hpp"
#include "service/api/routes.hpp"
#include "service/options/option_json.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::service {
namespace {

constexpr std::int64_t kLargestExtent = 4096, kMostChannels = 4096;

Response list_strategies(const Request&) {
  auto all = Json::array();
  for (const auto& info : strategies::registry()) {
    core::Schema schema;
    info.add_options(schema);
    all.push_back({{"name", info.name}, {"summary", info.summary}, {"options", options_json(schema, "")}});
  }
  return answer({{"strategies", all}});
}

Response list_optimizers(const Request&) {
  auto all = Json::array();
  for (const auto& info : core::kOptimizers)
    if (!info.variant)
      all.push_back({{"name", info.name},
                     {"lr", info.lr},
                     {"state_vectors", info.state_slots},
                     {"momentum", info.momentum},
                     {"on_servers", info.on_servers},
                     {"outer", info.outer}});
  return answer({{"optimizers", all}});
}

Json json_of(const nn::Shape& shape) { return {shape.channels, shape.height, shape.width}; }

Json json_of(const nn::ZooEntry& entry) {
  return {{"name", entry.name},
          {"summary", entry.description},
          {"input", json_of(entry.input)},
          {"classes", entry.classes},
          {"parameters", entry.parameters}};
}

Response list_models(const Request&) {
  auto all = Json::array();
  for (const auto& entry : nn::model_zoo()) all.push_back(json_of(entry));
  return answer({{"models", all}});
}

/// "3x28x28". Errc::usage.
core::Result<nn::Shape> shape_in(const std::string& text) {
  std::array<std::int64_t, 3> extents{};
  std::string_view rest = text;
  bool good = true;
  for (std::size_t i = 0; i < extents.size() && good; ++i) {
    const auto part = rest.substr(0, rest.find('x'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extents.at(i));
    good = error == std::errc{} && end == part.data() + part.size() && extents.at(i) > 0 &&
           extents.at(i) <= (i == 0 ? kMostChannels : kLargestExtent);
  }
  if (good && rest.empty()) return nn::Shape{extents[0], extents[1], extents[2]};
  return core::fail(core::Errc::usage,
                    fmt::format("input is \"{}\": it must be CHANNELSxHEIGHTxWIDTH, such as 3x28x28", text));
}

Json layers_of(const nn::Graph& graph) {
  auto layers = Json::array();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& node = graph.nodes()[i];
    std::int64_t parameters = 0;
    for (const auto& parameter : graph.parameters())
      if (parameter.node == static_cast<int>(i)) parameters += parameter.size();
    auto inputs = Json::array();
    for (const int input : node.inputs)
      inputs.push_back(input < 0 ? std::string("input") : graph.nodes()[static_cast<std::size_t>(input)].name);
    layers.push_back({{"name", node.name},
                      {"kind", nn::layer_type(node.layer)},
                      {"inputs", inputs},
                      {"shape", json_of(node.output)},
                      {"parameters", parameters},
                      {"flops", graph.training_flops(static_cast<int>(i))}});
  }
  return layers;
}

Response show_model(const Request& request) {
  const auto& name = request.parameter("name");
  for (const auto& entry : nn::model_zoo()) {
    if (entry.name != name) continue;
    auto shape = core::Result<nn::Shape>(entry.input);
    if (const auto input = request.query_value("input"); input && !input->empty()) shape = shape_in(*input);
    if (!shape) return failure(shape.error());
    nn::ModelConfig config;
    config.name = name;
    const auto graph = nn::build_model(config, *shape, entry.classes);
    if (!graph) return failure(graph.error());
    auto json = json_of(entry);
    json["input"] = json_of(*shape);
    json["parameters"] = graph->parameter_count();
    json["flops"] = graph->training_flops();  // forward and backward, of one sample
    json["layers"] = layers_of(*graph);
    return answer(json);
  }
  return failure(404, "unknown", fmt::format("no model is called \"{}\"; GET /api/v1/models lists them", name));
}

}  // namespace

void add_catalogue_routes(Router& router, Context&) {
  const auto add = [&](const char* pattern, Handler handler) {
    router.add({.method = Method::get, .pattern = pattern, .where = Where::files, .handler = std::move(handler)});
  };
  add("/api/v1/strategies", list_strategies);
  add("/api/v1/optimizers", list_optimizers);
  add("/api/v1/models", list_models);
  add("/api/v1/models/{name}", show_model);
}

}  // namespace troupe::service
