/// Lowers graph nodes to operations. One function per layer type, in its own file: it adds the forward operations and returns a
/// function that adds the backward ones. graph_lowering.cpp joins them. Compile time only. Thread rule: one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/program/choices.hpp"
#include "gpu/program/program_builder.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu {

/// The inputs of every lowering function.
struct Lowering {
  const nn::Graph& graph;
  const nn::CompileOptions& options;
  ProgramBuilder& program;
  Choices& choices;
  Type type = Type::fp32;  // of activations and their gradients
  Math math = Math::fp32;
  bool gradient_is_shared = false;  // the output gradient that a Backward is given is another layer's, too
};

/// Adds the backward operations of a layer. Takes the gradient of its output, which has the output's shape and order, and returns those of
/// its inputs in theirs; none where a gradient is not needed. Several may be one operand.
using Backward = std::function<std::vector<Operand>(const Operand& output_gradient)>;

/// Σ x and Σ x² of each channel of a value, float32, that the convolution which wrote it left in a training pass.
struct ChannelSums {
  Operand sum{};  // none: there are none
  Operand squares{};
};

struct Lowered {
  Operand output;
  Backward backward{};                  // empty if not training
  std::optional<Type> gradient_type{};  // that Backward wants of a loss; none: the output's
  ChannelSums sums{};                   // of the output
};

/// A node of the graph, and what its lowering needs of its neighbours.
struct LayerContext {
  int node = 0;
  Operand input;
  nn::Shape input_shape;
  nn::Shape output_shape;
  int first_parameter = -1;                  // index of the weight; the bias follows
  int first_statistic = -1;                  // index of the running mean; the variance follows
  bool input_gradient = true;                // true if an earlier node has parameters
  std::optional<nn::Activation> activation;  // of the next node, to be fused with this one
  bool is_output = false;                    // only a loss reads it: float32
  bool is_normalised = false;                // a batch norm reads the value of this node
  ChannelSums sums{};                        // of the input
};

/// The input may be the batch's images, which are in plain order.
[[nodiscard]] Lowered lower_convolution(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer);
[[nodiscard]] Lowered lower_linear(Lowering& lowering, const LayerContext& context, const nn::LinearLayer& layer);
[[nodiscard]] Lowered lower_pooling(Lowering& lowering, const LayerContext& context, const nn::PoolLayer& layer);
[[nodiscard]] Lowered lower_adaptive_pooling(Lowering& lowering, const LayerContext& context);
[[nodiscard]] Lowered lower_activation(Lowering& lowering, const LayerContext& context, nn::Activation activation);
[[nodiscard]] Lowered lower_dropout(Lowering& lowering, const LayerContext& context, const nn::DropoutLayer& layer,
                                    const Operand& key);
[[nodiscard]] Lowered lower_lrn(Lowering& lowering, const LayerContext& context, const nn::LrnLayer& layer);
/// Fused with context.activation (relu only) and, unless it is none, with the sum with `addend`. Backward then returns two gradients.
[[nodiscard]] Lowered lower_batch_norm(Lowering& lowering, const LayerContext& context, const nn::BatchNormLayer& layer,
                                       const Operand& addend);
/// The sum of the inputs, fused with context.activation (relu only).
[[nodiscard]] Lowered lower_add(Lowering& lowering, const LayerContext& context, const std::vector<Operand>& inputs);
[[nodiscard]] Lowered lower_concat(Lowering& lowering, const LayerContext& context, const std::vector<Operand>& inputs);

/// A loss on the value of a node with its counts, which go to `sums`; returns the gradient of the value in its order, of `gradient_type`;
/// none if not training. `outputs` gets the float32 values in plain order that the loss reads.
struct LossInputs {
  Operand value;
  Operand labels;
  Operand samples;
  Operand sums;
  Operand loss_scale;  // none: 1
  double weight = 1;
  Type gradient_type = Type::fp32;
};
struct LoweredLoss {
  Operand outputs;
  std::function<Operand()> gradient{};  // adds what backward begins with; empty if not training
};
[[nodiscard]] LoweredLoss lower_loss(Lowering& lowering, const LossInputs& inputs);

// Shared functions of the lowerings (shared.cpp).

[[nodiscard]] TensorShape tensor_shape(const Lowering& lowering, const nn::Shape& shape);
/// `operand` as NHWC of this shape and the precision's type: itself, a view, or a copy.
[[nodiscard]] Operand as_image(Lowering& lowering, Phase phase, const Operand& operand, const TensorShape& wanted);
/// What convolutions want of the images: channels that fill what tensor cores read at a time.
[[nodiscard]] TensorShape images_shape(const Lowering& lowering, const nn::Shape& shape);
/// The batch's images as NHWC of the precision's type with at least `channels` channels; the rest are zeros.
[[nodiscard]] Operand padded_images(Lowering& lowering, const Operand& images, std::int64_t channels);
/// `operand` in plain order, of `type`: itself or a copy.
[[nodiscard]] Operand as_plain(Lowering& lowering, Phase phase, const Operand& operand, Type type);
/// The gradient of what as_image() or as_plain() made of `of`, in the order of `of`. Undoes them.
[[nodiscard]] Operand gradient_like(Lowering& lowering, const Operand& gradient, const Operand& of);
[[nodiscard]] Operand cast(Lowering& lowering, Phase phase, const Operand& operand, Type type);
/// The gradient as memory that may be overwritten: itself, or a new tensor if others read it, into which a kernel writes its result.
[[nodiscard]] Operand target_for(Lowering& lowering, const Operand& gradient);
/// to ← Σ operands, perhaps with relu; `to` may be the first.
void add_up(Lowering& lowering, Phase phase, const std::vector<Operand>& operands, const Operand& to,
            bool relu = false);
/// dz from dy and y = f(z): overwrites dy where it may.
[[nodiscard]] Operand add_activation_backward(Lowering& lowering, nn::Activation activation, const Operand& y,
                                              const Operand& dy);
/// The gradient of a bias: the sums of dz [rows, columns] over its rows.
void add_column_sums(Lowering& lowering, const Operand& dz, std::int64_t columns, const Operand& sums);
[[nodiscard]] const nn::Node& node_of(const Lowering& lowering, const LayerContext& context);

}  // namespace troupe::gpu
