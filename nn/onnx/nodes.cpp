#include "nn/onnx/nodes.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace troupe::nn {
namespace {

constexpr std::string_view kOut = ".out";  // behind a node's name: the name of its value, unlike that of any tensor

void attribute(onnx::Node& node, const std::string& name, std::int64_t value) {
  auto& to = *node.add_attribute();
  to.set_name(name);
  to.set_type(onnx::Attribute::INT);
  to.set_i(value);
}

void attribute(onnx::Node& node, const std::string& name, double value) {
  auto& to = *node.add_attribute();
  to.set_name(name);
  to.set_type(onnx::Attribute::FLOAT);
  to.set_f(static_cast<float>(value));
}

void attribute(onnx::Node& node, const std::string& name, std::initializer_list<std::int64_t> values) {
  auto& to = *node.add_attribute();
  to.set_name(name);
  to.set_type(onnx::Attribute::INTS);
  for (const auto value : values) to.add_ints(value);
}

/// The padding behind the end with which whole windows are those of the layer: readers of ONNX disagree on its ceil_mode.
std::int64_t end_padding(const PoolLayer& layer, std::int64_t size, std::int64_t windows) {
  return std::max<std::int64_t>(0, (windows - 1) * layer.stride + layer.kernel - size - layer.padding);
}

/// Row i averages the pixels of window i: [windows, size].
std::vector<float> averages(std::int64_t size, std::int64_t windows) {
  std::vector<float> matrix(static_cast<std::size_t>(size * windows));
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t from = i * size / windows, to = ((i + 1) * size + windows - 1) / windows;
    for (std::int64_t x = from; x < to; ++x)
      matrix[static_cast<std::size_t>(i * size + x)] = 1.0F / static_cast<float>(to - from);
  }
  return matrix;
}

std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t rows, std::int64_t columns) {
  std::vector<float> result(matrix.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      result[static_cast<std::size_t>(c * rows + r)] = matrix[static_cast<std::size_t>(r * columns + c)];
  return result;
}

}  // namespace

/// Adds the operators of one layer; the value has the node's name, or is the layer's input where it changes nothing.
struct OnnxNodes::Writer {
  OnnxNodes& to;
  const Node& node;
  std::vector<OnnxValue> inputs;

  [[nodiscard]] std::string out() const { return node.name + std::string(kOut); }
  [[nodiscard]] OnnxValue value(bool is_image) const { return {out(), is_image, node.output}; }
  OnnxValue simple(const std::string& type) const {
    to.add(type, {inputs.front().name}, out());
    return value(inputs.front().is_image);
  }

  OnnxValue operator()(const LinearLayer&) const {
    const auto input = to.as_vector(inputs.front());
    auto& gemm = to.add("Gemm", {input.name, node.name + ".weight", node.name + ".bias"}, out());
    attribute(gemm, "transB", std::int64_t{1});
    return value(false);
  }
  OnnxValue operator()(const Conv2dLayer& layer) const {
    const auto input = to.as_image(inputs.front());
    std::vector<std::string> names{input.name, node.name + ".weight"};
    if (layer.bias) names.push_back(node.name + ".bias");
    auto& conv = to.add("Conv", names, out());
    attribute(conv, "kernel_shape", {layer.kernel, layer.kernel});
    attribute(conv, "strides", {layer.stride, layer.stride});
    attribute(conv, "pads", {layer.padding, layer.padding, layer.padding, layer.padding});
    attribute(conv, "group", layer.groups);
    return value(true);
  }
  OnnxValue operator()(const PoolLayer& layer) const {
    const auto input = to.as_image(inputs.front());
    auto& pool = to.add(layer.kind == PoolKind::max ? "MaxPool" : "AveragePool", {input.name}, out());
    attribute(pool, "kernel_shape", {layer.kernel, layer.kernel});
    attribute(pool, "strides", {layer.stride, layer.stride});
    attribute(pool, "pads",
              {layer.padding, layer.padding, end_padding(layer, input.shape.height, node.output.height),
               end_padding(layer, input.shape.width, node.output.width)});
    return value(true);
  }
  OnnxValue operator()(const AdaptiveAveragePoolLayer& layer) const {
    const auto input = to.as_image(inputs.front());
    const auto [channels, height, width] = input.shape;
    const auto size = layer.size;
    if (size == 1) {
      to.add("GlobalAveragePool", {input.name}, out());
    } else if (height % size == 0 && width % size == 0) {
      auto& pool = to.add("AveragePool", {input.name}, out());
      attribute(pool, "kernel_shape", {height / size, width / size});
      attribute(pool, "strides", {height / size, width / size});
    } else {  // windows of several sizes: one matrix averages rows, another one columns
      const auto rows = to.constant(node.name + ".rows", {size, height}, averages(height, size));
      const auto columns =
          to.constant(node.name + ".columns", {width, size}, transposed(averages(width, size), size, width));
      to.add("MatMul", {rows, input.name}, node.name + ".high");
      to.add("MatMul", {node.name + ".high", columns}, out());
    }
    return value(true);
  }
  OnnxValue operator()(const AddLayer&) const {
    const auto same = alike();
    to.add(same.size() == 2 ? "Add" : "Sum", names_of(same), out());
    return value(same.front().is_image);
  }
  OnnxValue operator()(const ConcatLayer&) const {
    const auto same = alike();
    attribute(to.add("Concat", names_of(same), out()), "axis", std::int64_t{1});
    return value(same.front().is_image);
  }
  OnnxValue operator()(const ActivationLayer& layer) const {
    switch (layer.kind) {
      case Activation::relu: return simple("Relu");
      case Activation::sigmoid: return simple("Sigmoid");
      case Activation::tanh: break;
    }
    return simple("Tanh");
  }
  OnnxValue operator()(const DropoutLayer&) const { return inputs.front(); }  // evaluation: identity
  OnnxValue operator()(const FlattenLayer&) const {
    auto result = to.as_vector(inputs.front());
    result.shape = node.output;
    return result;
  }
  OnnxValue operator()(const LrnLayer& layer) const {
    const auto input = to.as_image(inputs.front());
    auto& lrn = to.add("LRN", {input.name}, out());
    attribute(lrn, "size", layer.size);
    attribute(lrn, "alpha", layer.alpha);
    attribute(lrn, "beta", layer.beta);
    attribute(lrn, "bias", layer.k);
    return value(true);
  }
  OnnxValue operator()(const BatchNormLayer& layer) const {
    auto& norm = to.add("BatchNormalization",
                        {inputs.front().name, node.name + ".weight", node.name + ".bias", node.name + ".running_mean",
                         node.name + ".running_var"},
                        out());
    attribute(norm, "epsilon", layer.epsilon);
    return value(inputs.front().is_image);
  }

 private:
  /// All inputs as vectors, if one is.
  [[nodiscard]] std::vector<OnnxValue> alike() const {
    auto same = inputs;
    if (std::ranges::all_of(same, &OnnxValue::is_image)) return same;
    for (auto& input : same) input = to.as_vector(input);
    return same;
  }
  static std::vector<std::string> names_of(const std::vector<OnnxValue>& values) {
    std::vector<std::string> names;
    for (const auto& value : values) names.push_back(value.name);
    return names;
  }
};

void OnnxNodes::write(const std::string& input, const std::string& output) {
  input_ = {input, true, graph_.input()};
  values_.resize(graph_.nodes().size());
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (!graph_.is_evaluated(static_cast<int>(i))) continue;
    const auto& node = graph_.nodes()[i];
    std::vector<OnnxValue> inputs;
    for (const int from : node.inputs) inputs.push_back(value_of(from));
    values_[i] = std::visit(Writer{*this, node, std::move(inputs)}, node.layer);
  }
  add("Identity", {as_vector(values_.back()).name}, output);
}

onnx::Node& OnnxNodes::add(const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
  auto& node = *target_.add_node();
  node.set_op_type(type);
  node.set_name(output.ends_with(kOut) ? output.substr(0, output.size() - kOut.size()) : output);
  for (const auto& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

const OnnxValue& OnnxNodes::value_of(int node) const {
  return node < 0 ? input_ : values_[static_cast<std::size_t>(node)];
}

OnnxValue OnnxNodes::as_image(const OnnxValue& value) {
  if (value.is_image) return value;
  const auto name = fmt::format("{}.image{}", value.name, ++reshaped_);
  add("Reshape", {value.name, constant(name + ".shape", {0, value.shape.channels, 1, 1})}, name);  // 0: as it is
  return {name, true, value.shape};
}

OnnxValue OnnxNodes::as_vector(const OnnxValue& value) {
  if (!value.is_image) return value;
  const auto name = fmt::format("{}.flat{}", value.name, ++reshaped_);
  attribute(add("Flatten", {value.name}, name), "axis", std::int64_t{1});
  return {name, false, {value.shape.size(), 1, 1}};
}

std::string OnnxNodes::constant(const std::string& name, const std::vector<std::int64_t>& shape,
                                const std::vector<float>& values) {
  auto& tensor = *target_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::Tensor::FLOAT);
  for (const auto extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

std::string OnnxNodes::constant(const std::string& name, const std::vector<std::int64_t>& values) {
  auto& tensor = *target_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::Tensor::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
  return name;
}

}  // namespace troupe::nn
