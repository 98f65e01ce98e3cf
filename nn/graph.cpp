#include "nn/graph.hpp"

#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/text/layout.hpp"

namespace troupe::nn {
namespace {

/// Above the memory of any machine, below the overflow of int64 products.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

/// Bounds of numbers in layer arithmetic: float32 leaves room for a few products.
constexpr double kSmallest = 1e-12;
constexpr double kLargest = 1e12;

/// Π factors; none if it exceeds kMaxSize. Factors are in [0, kMaxSize].
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
    std::string operator()(const LrnLayer&) const { return "lrn"; }
    std::string operator()(const BatchNormLayer&) const { return "bn"; }
  };
  return std::visit(Names{}, layer);
}

using Problem = std::optional<std::string>;  // the text of the mismatch; none: all fits

Problem check_extent(std::string_view what, std::int64_t value, std::int64_t low) {
  if (value >= low && value <= kMaxExtent) return std::nullopt;
  return fmt::format("{} = {} is not between {} and {}", what, value, low, core::readable(kMaxExtent));
}

Problem check_number(std::string_view what, double value, double low, double high) {
  if (value >= low && value <= high) return std::nullopt;  // NaN is in no range
  return fmt::format("{} = {:g} is not between {} and {}", what, value, core::readable(low), core::readable(high));
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

/// Shape inference: the layer's output and its parameters for one input, or the mismatch.
struct Inference {
  Shape input;
  Shape output;
  std::vector<std::int64_t> weight;  // canonical shape; empty: the layer has no parameters
  Initialiser weight_initialiser;
  bool bias = true;  // of layers with a weight: as long as its first extent
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  bool statistics = false;  // a running mean and variance per channel

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
    if (auto p = check_extent("groups", layer.groups, 1)) return p;
    if (input.channels % layer.groups != 0 || layer.outputs % layer.groups != 0)
      return fmt::format("groups = {} does not divide {} input channels and {} outputs", layer.groups, input.channels,
                         layer.outputs);
    const std::int64_t inputs = input.channels / layer.groups;  // that one output uses
    if (!bounded_product({layer.outputs, inputs, layer.kernel, layer.kernel}))
      return fmt::format("a weight of {} x {} x {} x {} is too large", layer.outputs, inputs, layer.kernel,
                         layer.kernel);
    output = {layer.outputs, windows(input.height, layer.kernel, layer.stride, layer.padding),
              windows(input.width, layer.kernel, layer.stride, layer.padding)};
    weight = {layer.outputs, inputs, layer.kernel, layer.kernel};
    weight_initialiser = layer.weight;
    bias = layer.bias;
    fan_in = inputs * layer.kernel * layer.kernel;
    fan_out = layer.outputs / layer.groups * layer.kernel * layer.kernel;
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
    if (!(layer.rate >= 0 && layer.rate < 1))
      return fmt::format("rate = {} is not between 0 and 1, without 1", layer.rate);
    output = input;
    return std::nullopt;
  }
  Problem operator()(const FlattenLayer&) {
    output = {input.size(), 1, 1};
    return std::nullopt;
  }
  Problem operator()(const LrnLayer& layer) {
    if (auto p = check_extent("size", layer.size, 1)) return p;
    if (layer.size % 2 == 0) return fmt::format("size = {} is even: a window has a channel in its middle", layer.size);
    if (auto p = check_number("alpha", layer.alpha, 0, kLargest)) return p;
    if (auto p = check_number("beta", layer.beta, 0, kLargest)) return p;
    if (auto p = check_number("k", layer.k, kSmallest, kLargest)) return p;  // the divisor of a pixel of zeros
    output = input;
    return std::nullopt;
  }
  Problem operator()(const BatchNormLayer& layer) {
    if (auto p = check_number("epsilon", layer.epsilon, kSmallest, kLargest)) return p;
    if (auto p = check_number("momentum", layer.momentum, 0, 1)) return p;
    output = input;
    weight = {input.channels};
    weight_initialiser = {InitialiserKind::constant, 1};
    fan_in = fan_out = 1;
    statistics = true;
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

core::Result<Graph> Graph::sequential(std::string name, Shape input, const std::vector<Layer>& layers, Loss loss,
                                      const GraphPlaces& places) {
  const auto model = places.model.empty() ? fmt::format("model \"{}\"", name) : places.model;
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("{}: {}", model, why));
  };
  const auto place_of = [&](std::size_t layer, const std::string& node_name) {
    return places.layers.empty() ? fmt::format("{}: layer \"{}\"", model, node_name) : places.layers.at(layer);
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
      return core::fail(core::Errc::config,
                        fmt::format("{} with input {}: {}", place_of(static_cast<std::size_t>(index), node_name),
                                    to_string(shape), *problem));
    if (!inference.weight.empty()) {
      graph.parameters_.push_back({node_name + ".weight", inference.weight, inference.weight_initialiser,
                                   inference.fan_in, inference.fan_out, index});
      if (inference.bias)
        graph.parameters_.push_back({node_name + ".bias",
                                     {inference.weight.front()},
                                     {InitialiserKind::constant, 0},
                                     inference.fan_in,
                                     inference.fan_out,
                                     index});
    }
    if (inference.statistics) {
      graph.statistics_.push_back({node_name + ".running_mean", shape.channels, 0, index});
      graph.statistics_.push_back({node_name + ".running_var", shape.channels, 1, index});
    }
    graph.nodes_.push_back({node_name, layer, {index - 1}, inference.output});
    shape = inference.output;
  }
  if (graph.parameters_.empty()) return refuse("no layer has parameters: there is nothing to train");
  if (shape.height != 1 || shape.width != 1)
    return core::fail(core::Errc::config,
                      fmt::format("{}, the last one, gives {}, and the loss needs a vector: end with a linear or "
                                  "flatten layer",
                                  place_of(layers.size() - 1, graph.nodes_.back().name), to_string(shape)));
  return graph;
}

std::int64_t Graph::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_) count += parameter.size();
  return count;
}

double Graph::training_flops() const noexcept {
  double flops = 0;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) flops += training_flops(node);
  return flops;
}

double Graph::training_flops(int node) const noexcept {
  double flops = 0;
  for (const auto& parameter : parameters_) {
    if (parameter.node != node || parameter.shape.size() < 2) continue;  // biases and normalisation
    const bool first = parameter.node == parameters_.front().node;       // no gradient of its input is needed
    const Shape& output = nodes_[static_cast<std::size_t>(parameter.node)].output;
    const double positions = static_cast<double>(output.height) * static_cast<double>(output.width);
    const double forward = 2.0 * static_cast<double>(parameter.size()) * positions;
    flops += forward * (first ? 2 : 3);
  }
  return flops;
}

}  // namespace troupe::nn
