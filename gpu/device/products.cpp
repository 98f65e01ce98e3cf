#include "gpu/device/products.hpp"

#include <string_view>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

std::string_view direction_name(Direction direction) {
  switch (direction) {
    case Direction::forward: return "forward";
    case Direction::backward_data: return "backward data";
    case Direction::backward_weights: return "backward weights";
  }
  return "?";
}

std::string image_text(const TensorShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

/// ", bias, addend, relu, tf32, deterministic": what is set.
std::string properties(bool bias, bool addend, const std::optional<nn::Activation>& activation, Math math,
                       bool deterministic) {
  std::string text;
  if (bias) text += ", bias";
  if (addend) text += ", addend";
  if (activation) text += fmt::format(", {}", nn::to_string(*activation));
  if (math == Math::tf32) text += ", tf32";
  if (deterministic) text += ", deterministic";
  return text;
}

}  // namespace

std::string to_string(const Convolution& c) {
  const ConvolutionShape& s = c.shape;
  std::string text = fmt::format("{} {} {}x{} s{} p{} g{} → {}, batch {}, {}", direction_name(c.direction),
                                 image_text(s.input), s.kernel, s.kernel, s.stride, s.padding, s.groups,
                                 image_text(s.output), s.input.batch, name_of(c.type));
  if (c.weight_gradient != c.type && c.direction == Direction::backward_weights)
    text += fmt::format(" → {}", name_of(c.weight_gradient));
  text += properties(c.bias, c.addend, c.activation, c.math, c.deterministic);
  return c.statistics ? text + ", statistics" : text;
}

std::string to_string(const MatrixProduct& p) {
  std::string text = fmt::format("{}x{}{} · {}x{}{}, {}", p.m, p.k, p.transpose_a ? "ᵀ" : "", p.k, p.n,
                                 p.transpose_b ? "ᵀ" : "", name_of(p.type));
  if (p.output != p.type) text += fmt::format(" → {}", name_of(p.output));
  return text + properties(p.bias, false, {}, p.math, p.deterministic);
}

}  // namespace troupe::gpu
