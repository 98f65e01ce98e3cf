#include "nn/shape_inference.hpp"

#include <cmath>

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

/// Number of whole windows of `kernel` along `size` with `padding` on both sides.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return (size + 2 * padding - kernel) / stride + 1;
}

/// Number of windows of a pooling: with `ceil` also one that hangs over the end, if it starts within the input or its padding.
std::int64_t windows(std::int64_t size, const PoolLayer& layer) {
  const std::int64_t whole = windows(size, layer.kernel, layer.stride, layer.padding);
  const std::int64_t rest = (size + 2 * layer.padding - layer.kernel) % layer.stride;
  return layer.ceil && rest > 0 && whole * layer.stride < size + layer.padding ? whole + 1 : whole;
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

/// One layer with its inputs.
struct Inference : InferredLayer {
  std::span<const Shape> inputs;
  Shape input;  // the first

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
    const std::int64_t used = input.channels / layer.groups;  // by one output
    if (!bounded_product({layer.outputs, used, layer.kernel, layer.kernel}))
      return fmt::format("a weight of {} x {} x {} x {} is too large", layer.outputs, used, layer.kernel, layer.kernel);
    output = {layer.outputs, windows(input.height, layer.kernel, layer.stride, layer.padding),
              windows(input.width, layer.kernel, layer.stride, layer.padding)};
    weight = {layer.outputs, used, layer.kernel, layer.kernel};
    weight_initialiser = layer.weight;
    bias = layer.bias;
    fan_in = used * layer.kernel * layer.kernel;
    fan_out = layer.outputs / layer.groups * layer.kernel * layer.kernel;
    return std::nullopt;
  }
  Problem operator()(const PoolLayer& layer) {
    if (auto p = check_window(input, layer.kernel, layer.stride, layer.padding)) return p;
    output = {input.channels, windows(input.height, layer), windows(input.width, layer)};
    return std::nullopt;
  }
  Problem operator()(const AdaptiveAveragePoolLayer& layer) {
    if (auto p = check_extent("size", layer.size, 1)) return p;
    if (layer.size > input.height || layer.size > input.width)
      return fmt::format("size = {} is larger than the input", layer.size);
    output = {input.channels, layer.size, layer.size};
    return std::nullopt;
  }
  Problem operator()(const AddLayer&) {
    if (inputs.size() < 2) return "it adds two or more inputs";
    for (const Shape& other : inputs)
      if (other != input) return "its inputs differ in shape, and it adds value to value";
    output = input;
    return std::nullopt;
  }
  Problem operator()(const ConcatLayer&) {
    if (inputs.size() < 2) return "it joins two or more inputs";
    output = {0, input.height, input.width};
    for (const Shape& other : inputs) {
      if (other.height != input.height || other.width != input.width)
        return "its inputs differ in height or width, and it joins channels";
      output.channels += other.channels;
    }
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
    if (auto p = check_number("initial_weight", layer.initial_weight, -kLargest, kLargest)) return p;
    weight_initialiser = {InitialiserKind::constant, layer.initial_weight};
    fan_in = fan_out = 1;
    statistics = true;
    return std::nullopt;
  }
};

}  // namespace

Problem infer(const Layer& layer, std::span<const Shape> inputs, InferredLayer& result) {
  const bool joins = std::holds_alternative<AddLayer>(layer) || std::holds_alternative<ConcatLayer>(layer);
  if (!joins && inputs.size() != 1) return fmt::format("it takes one input, not {}", inputs.size());
  Inference inference;
  inference.inputs = inputs;
  inference.input = inputs.front();
  if (auto problem = std::visit(inference, layer)) return problem;
  if (!is_bounded(inference.output)) return fmt::format("its output {} is too large", to_string(inference.output));
  result = inference;
  return std::nullopt;
}

bool is_bounded(const Shape& shape) {
  return shape.channels > 0 && shape.height > 0 && shape.width > 0 &&
         bounded_product({shape.channels, shape.height, shape.width});
}

}  // namespace troupe::nn
