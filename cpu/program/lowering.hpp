/// From graph nodes to operations. One function per layer, in a file of its own; each adds its forward operations and returns
/// what will add its backward ones. compile.cpp strings them together. Compile time only. Thread rule: one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dnnl.hpp>

#include "cpu/program/choices.hpp"
#include "cpu/program/program_builder.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// What every lowering function works with.
struct Lowering {
  const nn::Graph& graph;
  const nn::CompileOptions& options;
  dnnl::engine engine;
  ProgramBuilder& program;
  Choices& choices;
};

/// Adds the backward operations of a layer: takes the gradient of its output (in any layout; it may be overwritten), returns
/// that of its input, or none where nobody needs it.
using Backward = std::function<Operand(const Operand& output_gradient)>;

struct Lowered {
  Operand output;
  Backward backward;  // empty when not training
};

/// One node with what surrounds it.
struct Site {
  int node = 0;
  Operand input;
  nn::Shape input_shape;
  int first_parameter = -1;                  // index of the weight; the bias follows
  int first_statistic = -1;                  // index of the running mean; the variance follows
  bool input_gradient = true;                // some earlier node has parameters
  std::optional<nn::Activation> activation;  // of the next node, to be computed along
};

[[nodiscard]] Lowered lower_convolution(Lowering& lowering, const Site& site, const nn::Conv2dLayer& layer);
/// A convolution, site.activation and the pooling in node `pool_node` behind it in one, where our own gradients of the three together
/// apply (cpu/kernels/pooled_gradient.hpp); none otherwise.
[[nodiscard]] std::optional<Lowered> lower_pooled_convolution(Lowering& lowering, const Site& site,
                                                              const nn::Conv2dLayer& layer, int pool_node);
[[nodiscard]] Lowered lower_linear(Lowering& lowering, const Site& site, const nn::LinearLayer& layer);
[[nodiscard]] Lowered lower_pooling(Lowering& lowering, const Site& site, const nn::PoolLayer& layer);
[[nodiscard]] Lowered lower_activation(Lowering& lowering, const Site& site, nn::Activation activation);
[[nodiscard]] Lowered lower_lrn(Lowering& lowering, const Site& site, const nn::LrnLayer& layer);
/// With site.activation (relu only) behind it.
[[nodiscard]] Lowered lower_batch_norm(Lowering& lowering, const Site& site, const nn::BatchNormLayer& layer);
[[nodiscard]] Lowered lower_dropout(Lowering& lowering, const Site& site, const nn::DropoutLayer& layer);

// What they share.

/// Pooling of a tensor that lies as `source` says.
[[nodiscard]] dnnl::pooling_forward::primitive_desc describe_pooling(Lowering& lowering, int node,
                                                                     const dnnl::memory::desc& source,
                                                                     const nn::PoolLayer& layer);
struct PooledOperands {
  Operand output;
  Operand winners;  // where each maximum came from; none in average pooling and without training
};
[[nodiscard]] PooledOperands add_pooling(Lowering& lowering, const dnnl::pooling_forward::primitive_desc& forward,
                                         const Operand& source);

/// [batch, channels, height, width] of a value.
[[nodiscard]] dnnl::memory::dims spatial_dims(const Lowering& lowering, const nn::Shape& shape);
/// The input with height and width: itself, or a vector seen as one pixel.
[[nodiscard]] Operand spatial_input(Lowering& lowering, const Site& site);
/// An activation as the plan wants it, for primitives that may ask for something else ("any" when blocked).
[[nodiscard]] dnnl::memory::desc spatial_desc(const Lowering& lowering, const nn::Shape& shape);
/// Attributes with scratchpads in our workspace and, where given, an activation computed along.
[[nodiscard]] dnnl::primitive_attr attributes(std::optional<nn::Activation> activation = std::nullopt);
[[nodiscard]] dnnl::algorithm forward_algorithm(nn::Activation activation);
/// "conv2.forward": the key of a choice.
[[nodiscard]] std::string use_of(const Lowering& lowering, int node, const char* direction);

/// Adds the backward of an activation whose output is at hand: overwrites and returns the gradient, in the output's layout.
[[nodiscard]] Operand add_activation_backward(Lowering& lowering, int node, nn::Activation activation,
                                              const Operand& output, const Operand& output_gradient);
/// A copy when the operand is the batch's images themselves (kernels and callers need memory of ours), else itself.
[[nodiscard]] Operand owned(Lowering& lowering, const Operand& operand);

}  // namespace troupe::cpu
