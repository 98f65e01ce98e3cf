/// Lowers graph nodes to operations. One function per layer type, in its own file: it adds the forward operations and returns a
/// function that adds the backward ones. compile.cpp joins them. Compile time only. Thread rule: one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dnnl.hpp>

#include "cpu/program/choices.hpp"
#include "cpu/program/program_builder.hpp"
#include "cpu/program/trials.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// The inputs of every lowering function.
struct Lowering {
  const nn::Graph& graph;
  const nn::CompileOptions& options;
  dnnl::engine engine;
  ProgramBuilder& program;
  Choices& choices;
  Trials& trials;
  dnnl::memory::data_type type;     // of activations and their gradients, where a layer does not need float32
  bool gradient_is_shared = false;  // the output gradient that a Backward is given is another layer's, too
};

/// Adds the backward operations of a layer. Takes the gradient of its output (in any layout; overwritable() makes memory of it that may
/// be overwritten) and returns the gradient of its input, or none if it is not needed.
using Backward = std::function<Operand(const Operand& output_gradient)>;

struct Lowered {
  Operand output;
  Backward backward;  // empty if not training
};

/// The same for a layer with several inputs: returns the gradients of all, of which several may be one operand.
using JoinBackward = std::function<std::vector<Operand>(const Operand& output_gradient)>;

struct LoweredJoin {
  Operand output;
  JoinBackward backward;  // empty if not training
};

/// A node of the graph, and what its lowering needs of its neighbours.
struct LayerContext {
  int node = 0;
  Operand input;
  nn::Shape input_shape;
  int first_parameter = -1;                  // index of the weight; the bias follows
  int first_statistic = -1;                  // index of the running mean; the variance follows
  bool input_gradient = true;                // true if an earlier node has parameters
  std::optional<nn::Activation> activation;  // of the next node, to be fused with this one
};

[[nodiscard]] Lowered lower_convolution(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer);
/// A convolution fused with site.activation and the pooling in node `pool_node` behind it, if Troupe's own gradients for the three
/// apply (cpu/kernels/pooled_gradient.hpp); otherwise none.
[[nodiscard]] std::optional<Lowered> lower_pooled_convolution(Lowering& lowering, const LayerContext& context,
                                                              const nn::Conv2dLayer& layer, int pool_node);
[[nodiscard]] Lowered lower_linear(Lowering& lowering, const LayerContext& context, const nn::LinearLayer& layer);
[[nodiscard]] Lowered lower_pooling(Lowering& lowering, const LayerContext& context, const nn::PoolLayer& layer);
[[nodiscard]] Lowered lower_activation(Lowering& lowering, const LayerContext& context, nn::Activation activation);
[[nodiscard]] Lowered lower_lrn(Lowering& lowering, const LayerContext& context, const nn::LrnLayer& layer);
/// Fused with site.activation (relu only).
[[nodiscard]] Lowered lower_batch_norm(Lowering& lowering, const LayerContext& context,
                                       const nn::BatchNormLayer& layer);
[[nodiscard]] Lowered lower_adaptive_pooling(Lowering& lowering, const LayerContext& context,
                                             const nn::AdaptiveAveragePoolLayer& layer);
[[nodiscard]] Lowered lower_dropout(Lowering& lowering, const LayerContext& context, const nn::DropoutLayer& layer);

/// The sum of the inputs, fused with context.activation if they are two.
[[nodiscard]] LoweredJoin lower_add(Lowering& lowering, const LayerContext& context,
                                    const std::vector<Operand>& inputs);
[[nodiscard]] LoweredJoin lower_concat(Lowering& lowering, const LayerContext& context,
                                       const std::vector<Operand>& inputs);

// Shared functions of the lowerings.

/// to ← Σ operands, all in one layout; `to` may be the first.
void add_up(Lowering& lowering, Phase phase, const std::vector<Operand>& operands, const Operand& to);
/// The gradient in the layout `wanted`, as memory that may be overwritten: itself, or a copy.
[[nodiscard]] Operand overwritable(Lowering& lowering, const Operand& gradient, const dnnl::memory::desc& wanted);

/// The windows of a pooling, for oneDNN: [height, width] each; padding before and behind the input.
struct Windows {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  dnnl::memory::dims kernel;
  dnnl::memory::dims strides;
  dnnl::memory::dims before;
  dnnl::memory::dims behind;
};
[[nodiscard]] Windows windows_of(const nn::PoolLayer& layer, const nn::Shape& input, const nn::Shape& output);
/// A layer that is just a pooling.
[[nodiscard]] Lowered lower_windows(Lowering& lowering, const LayerContext& context, const Windows& windows);
/// Pooling of a tensor with the layout `source`.
[[nodiscard]] dnnl::pooling_forward::primitive_desc describe_pooling(Lowering& lowering, int node,
                                                                     const dnnl::memory::desc& source,
                                                                     const Windows& windows);
struct PooledOperands {
  Operand output;
  Operand winners;  // the position of each maximum; none for average pooling and without training
};
[[nodiscard]] PooledOperands add_pooling(Lowering& lowering, const dnnl::pooling_forward::primitive_desc& forward,
                                         const Operand& source);

/// [batch, channels, height, width] of a value.
[[nodiscard]] dnnl::memory::dims spatial_dims(const Lowering& lowering, const nn::Shape& shape);
/// The input with height and width: itself, or a vector as one pixel.
[[nodiscard]] Operand spatial_input(Lowering& lowering, const LayerContext& context);
/// An activation of the precision's type in the plan's layout, for primitives that may choose another ("any" if blocked).
[[nodiscard]] dnnl::memory::desc spatial_desc(const Lowering& lowering, const nn::Shape& shape);
[[nodiscard]] dnnl::memory::desc spatial_desc(const Lowering& lowering, const nn::Shape& shape,
                                              dnnl::memory::data_type type);
/// Attributes with scratchpads in Troupe's workspace and, if given, a fused activation.
[[nodiscard]] dnnl::primitive_attr attributes(std::optional<nn::Activation> activation = std::nullopt);
[[nodiscard]] dnnl::algorithm forward_algorithm(nn::Activation activation);
/// "conv2.forward": the key of a choice.
[[nodiscard]] std::string use_of(const Lowering& lowering, int node, const char* direction);

/// Adds the backward of an activation from its output: overwrites and returns the gradient, in the output's layout.
[[nodiscard]] Operand add_activation_backward(Lowering& lowering, int node, nn::Activation activation,
                                              const Operand& output, const Operand& output_gradient);
/// A copy if the operand is the batch's own images (kernels and callers need memory of the workspace), otherwise itself.
[[nodiscard]] Operand owned(Lowering& lowering, const Operand& operand);

}  // namespace troupe::cpu
