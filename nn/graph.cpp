#include "nn/graph.hpp"

#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace troupe::nn {
namespace {

/// Above what any machine holds, below where products of int64 overflow.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

/// Π factors, or nothing when it exceeds kMaxSize. Factors are in [0, kMaxSize].
std::optional<std::int64_t> bounded_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const auto factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product) || product > kMaxSize) return std::nullopt;
  }
  return product;
}

std::string kind_of(const Layer& layer) {
  struct Names {
    std::string operator()(const LinearLayer&) const { return "fc"; }
    std::string operator()(const Conv2dLayer&) const { return "conv"; }
    std::string operator()(const PoolLayer&) const { return "pool"; }
    std::string operator()(const ActivationLayer& l) const { return std::string(to_string(l.kind)); }
    std::string operator()(const DropoutLayer&) const { return "dropout"; }
    std::string operator()(const FlattenLayer&) const { return "flatten"; }
  };
  return std::visit(Names{}, layer);
}

using Problem = std::optional<std::string>;  // what does not fit; empty: all does

Problem check_extent(std::string_view what, std::int64_t value, std::int64_t low) {
  if (value >= low && value <= kMaxExtent) return std::nullopt;
  return fmt::format("{} = {} is outside [{}, {}]", what, value, low, kMaxExtent);
}

Problem check_initialiser(const Initialiser& initialiser) {
  if (std::isfinite(initialiser.scale) && initialiser.scale >= 0) return std::nullopt;
  return fmt::format("initialiser scale {} is not a number ≥ 0", initialiser.scale);
}

/// Number of windows of `kernel` along `size` with `padding` on both sides.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return (size + 2 * padding - kernel) / stride + 1;
}

Problem check_window(const Shape& input, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (auto p = check_extent("kernel", kernel, 1)) return p;
  if (auto p = check_extent("stride", stride, 1)) return p;
  if (auto p = check_extent("padding", padding, 0)) return p;
  if (padding >= kernel) return fmt::format("padding {} is not smaller than kernel {}", padding, kernel);
  if (input.height + 2 * padding < kernel || input.width + 2 * padding < kernel)
    return fmt::format("kernel {} is larger than the input with padding {}", kernel, padding);
  return std::nullopt;
}

/// Shape inference: the layer's output and its parameters for one input, or what does not fit.
struct Inference {
  Shape input;
  Shape output;
  std::vector<std::int64_t> weight;  // canonical shape; empty: the layer has no parameters
  Initialiser weight_initialiser;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;

  Problem operator()(const LinearLayer& layer) {
    if (auto p = check_extent("outputs", layer.outputs, 1)) return p;
    if (auto p = check_initialiser(layer.weight)) return p;
    if (!bounded_product({layer.outputs, input.size()}))
      return fmt::format("a weight of {} x {} is too large", layer.outputs, input.size());
    output = {layer.outputs, 1, 1};
    weight = {layer.outputs, input.size()};
    weight_initialiser = layer.weight;
    fan_in = input.size();
    fan_out = layer.outputs;
    return std::nullopt;
  }
  Problem operator()(const Conv2dLayer& layer) {
    if (auto p = check_extent("outputs", layer.outputs, 1)) return p;
    if (auto p = check_initialiser(layer.weight)) return p;
    if (auto p = check_window(input, layer.kernel, layer.stride, layer.padding)) return p;
    if (!bounded_product({layer.outputs, input.channels, layer.kernel, layer.kernel}))
      return fmt::format("a weight of {} x {} x {} x {} is too large", layer.outputs, input.channels, layer.kernel,
                         layer.kernel);
    output = {layer.outputs, windows(input.height, layer.kernel, layer.stride, layer.padding),
              windows(input.width, layer.kernel, layer.stride, layer.padding)};
    weight = {layer.outputs, input.channels, layer.kernel, layer.kernel};
    weight_initialiser = layer.weight;
    fan_in = input.channels * layer.kernel * layer.kernel;
    fan_out = layer.outputs * layer.kernel * layer.kernel;
    return std::nullopt;
  }
  Problem operator()(const PoolLayer& layer) {
    if (auto p = check_window(input, layer.kernel, layer.stride, layer.padding)) return p;
    output = {input.channels, windows(input.height, layer.kernel, layer.stride, layer.padding),
              windows(input.width, layer.kernel, layer.stride, layer.padding)};
    return std::nullopt;
  }
  Problem operator()(const ActivationLayer&) {
    output = input;
    return std::nullopt;
  }
  Problem operator()(const DropoutLayer& layer) {
    if (!(layer.rate >= 0 && layer.rate < 1)) return fmt::format("rate {} is outside [0, 1)", layer.rate);
    output = input;
    return std::nullopt;
  }
  Problem operator()(const FlattenLayer&) {
    output = {input.size(), 1, 1};
    return std::nullopt;
  }
};

}  // namespace

std::string to_string(const Shape& shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("{}", shape.channels);
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

std::string_view to_string(Activation activation) noexcept {
  switch (activation) {
    case Activation::relu: return "relu";
    case Activation::sigmoid: return "sigmoid";
    case Activation::tanh: return "tanh";
  }
  return "?";
}

std::int64_t Parameter::size() const noexcept {
  std::int64_t size = 1;
  for (const auto extent : shape) size *= extent;
  return size;
}

core::Result<Graph> Graph::sequential(std::string name, Shape input, const std::vector<Layer>& layers, Loss loss) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("model \"{}\": {}", name, why));
  };
  if (input.channels < 1 || input.height < 1 || input.width < 1 ||
      !bounded_product({input.channels, input.height, input.width}))
    return refuse(fmt::format("its input {}x{}x{} is not a shape of positive, bounded extents", input.channels,
                              input.height, input.width));
  if (layers.empty()) return refuse("it has no layers");

  Graph graph;
  graph.name_ = name;
  graph.input_ = input;
  graph.loss_ = loss;
  std::map<std::string, int> numbered;
  Shape shape = input;
  for (const auto& layer : layers) {
    const int index = static_cast<int>(graph.nodes_.size());
    const std::string kind = kind_of(layer);
    const std::string node_name = fmt::format("{}{}", kind, ++numbered[kind]);
    Inference inference;
    inference.input = shape;
    Problem problem = std::visit(inference, layer);
    if (!problem && !bounded_product({inference.output.channels, inference.output.height, inference.output.width}))
      problem = fmt::format("its output {} is too large", to_string(inference.output));
    if (problem)
      return refuse(fmt::format("layer {} \"{}\" with input {}: {}", index + 1, node_name, to_string(shape), *problem));
    if (!inference.weight.empty()) {
      graph.parameters_.push_back({node_name + ".weight", inference.weight, inference.weight_initialiser,
                                   inference.fan_in, inference.fan_out, index});
      graph.parameters_.push_back({node_name + ".bias",
                                   {inference.weight.front()},
                                   {InitialiserKind::constant, 0},
                                   inference.fan_in,
                                   inference.fan_out,
                                   index});
    }
    graph.nodes_.push_back({node_name, layer, {index - 1}, inference.output});
    shape = inference.output;
  }
  if (graph.parameters_.empty()) return refuse("no layer has parameters: there is nothing to train");
  if (shape.height != 1 || shape.width != 1)
    return refuse(
        fmt::format("the last layer \"{}\" gives {}, the loss needs a vector: end with a linear or flatten layer",
                    graph.nodes_.back().name, to_string(shape)));
  return graph;
}

std::int64_t Graph::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_) count += parameter.size();
  return count;
}

double Graph::training_flops() const noexcept {
  double flops = 0;
  bool first = true;  // the first layer with parameters needs no gradient of its input
  for (const auto& parameter : parameters_) {
    if (parameter.shape.size() < 2) continue;  // biases: one addition each, not counted
    const Shape& output = nodes_[static_cast<std::size_t>(parameter.node)].output;
    const double positions = static_cast<double>(output.height) * static_cast<double>(output.width);
    const double forward = 2.0 * static_cast<double>(parameter.size()) * positions;
    flops += forward * (first ? 2 : 3);
    first = false;
  }
  return flops;
}

}  // namespace troupe::nn
