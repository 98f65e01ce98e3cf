#include "nn/onnx/encode.hpp"

#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "nn/onnx/nodes.hpp"
#include "nn/onnx/onnx.pb.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kIrVersion = 7;  // the first with operator set 13; readers take newer and older ones
constexpr std::int64_t kOperatorSet = 13;
constexpr const char* kInput = "images";
constexpr const char* kOutput = "logits";

void add_weights(onnx::Graph& graph, const std::string& name, const std::vector<std::int64_t>& shape,
                 core::ConstSpan values) {
  auto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::Tensor::FLOAT);
  for (const auto extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size_bytes());
}

/// [batch, extents…]
void describe(onnx::ValueInfo& value, const char* name, std::initializer_list<std::int64_t> extents) {
  value.set_name(name);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::Tensor::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const auto extent : extents) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

}  // namespace

core::Result<std::string> encode_onnx(const Graph& graph, core::ConstSpan parameters, core::ConstSpan statistics,
                                      const std::map<std::string, std::string>& metadata, const std::string& version) {
  onnx::Model model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("troupe");
  model.set_producer_version(version);
  model.add_opset_import()->set_version(kOperatorSet);
  model.mutable_opset_import(0)->set_domain("");
  for (const auto& [key, value] : metadata) {
    auto& text = *model.add_metadata_props();
    text.set_key(key);
    text.set_value(value);
  }
  auto& target = *model.mutable_graph();
  target.set_name(graph.name());
  const auto take = [](core::ConstSpan& from, std::int64_t count) {
    if (from.size() < static_cast<std::size_t>(count)) throw std::invalid_argument("encode_onnx: too few values");
    const auto values = from.first(static_cast<std::size_t>(count));
    from = from.subspan(values.size());
    return values;
  };
  for (const auto& parameter : graph.parameters()) {
    const auto values = take(parameters, parameter.size());
    if (graph.is_evaluated(parameter.node)) add_weights(target, parameter.name, parameter.shape, values);
  }
  for (const auto& statistic : graph.statistics()) {
    const auto values = take(statistics, statistic.channels);
    if (graph.is_evaluated(statistic.node)) add_weights(target, statistic.name, {statistic.channels}, values);
  }
  if (!parameters.empty() || !statistics.empty()) throw std::invalid_argument("encode_onnx: too many values");

  const auto& input = graph.input();
  describe(*target.add_input(), kInput, {input.channels, input.height, input.width});
  describe(*target.add_output(), kOutput, {graph.output().size()});
  OnnxNodes(graph, target).write(kInput, kOutput);

  if (model.ByteSizeLong() > std::numeric_limits<std::int32_t>::max())
    return core::fail(
        core::Errc::config,
        fmt::format("model \"{}\" has {} parameters, and an ONNX file at most 2 GB: export it as safetensors",
                    graph.name(), graph.parameter_count()));
  return model.SerializeAsString();
}

}  // namespace troupe::nn
