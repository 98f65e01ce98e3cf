// Convolutions. The arena holds weights as the device computes with them, [outputs, kernel, kernel, channels / groups], so that the gradient
// is written in place; images get channels of zeros, whose weights are the arena's padding: they are zero, and so are their gradients.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {
namespace {

void set_layouts(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer, std::int64_t channels) {
  const std::int64_t row = layer.kernel * channels;
  const std::int64_t output = layer.kernel * row;
  lowering.program.set_parameter_layout(context.first_parameter, {output, 1, row, channels}, layer.outputs * output);
  if (layer.bias) lowering.program.set_parameter_layout(context.first_parameter + 1, {1}, layer.outputs);
}

/// The weights as the device computes with them, [outputs, kernel, kernel, channels / groups]. With canonical arenas, which have
/// [outputs, channels / groups, kernel, kernel] without the zeros, they are copies: refreshed after the parameters changed, and of the
/// gradient one that is written to the arena when it is done.
struct ArenaWeights {
  TensorShape shape;          // with the channels of zeros
  std::int64_t channels = 0;  // without
  bool is_copy = false;
};

ArenaWeights arena_weights(const Lowering& lowering, const nn::Conv2dLayer& layer, std::int64_t padded,
                           std::int64_t channels) {
  const bool same = layer.kernel == 1 && padded == channels;
  return {{layer.outputs, layer.kernel, layer.kernel, padded}, channels, lowering.options.canonical_arenas && !same};
}

Operand weight_of(Lowering& lowering, const LayerContext& context, const ArenaWeights& weights) {
  if (!weights.is_copy) return lowering.program.working(context.first_parameter);
  const Operand master = lowering.program.parameter(context.first_parameter);
  const Operand copy = lowering.program.make(weights.shape, lowering.type, Life::kept);
  lowering.program.add_kernel(
      Phase::refresh, "working copy of weights", {master}, {copy}, [=, type = lowering.type](const Addresses& at) {
        return ImagesToNhwc{
            .from = at(master), .to = at(copy), .to_shape = weights.shape, .channels = weights.channels, .type = type};
      });
  return copy;
}

/// Writes the gradient's copy to the arena.
void add_gradient_to_arena(Lowering& lowering, const LayerContext& context, const ArenaWeights& weights,
                           const Operand& copy) {
  ProgramBuilder& program = lowering.program;
  const Operand arena = program.gradient(context.first_parameter);
  const bool plain = weights.shape.height * weights.shape.width == 1;
  Operand dense = copy;
  if (weights.channels != weights.shape.channels) {
    TensorShape shape = weights.shape;
    shape.channels = weights.channels;
    dense = plain ? arena : program.make(shape, Type::fp32);
    program.add_kernel(Phase::backward, "weight gradient without padding", {copy}, {dense}, [=](const Addresses& at) {
      return CopyChannels{.from = at(copy),
                          .to = at(dense),
                          .from_channels = weights.shape.channels,
                          .to_channels = weights.channels,
                          .channels = weights.channels,
                          .pixels = weights.shape.pixels(),
                          .type = Type::fp32};
    });
  }
  if (plain) return;
  program.add_kernel(Phase::backward, "weight gradient to the arena", {dense}, {arena}, [=](const Addresses& at) {
    return Transpose{.from = at(dense),
                     .to = at(arena),
                     .batch = weights.shape.batch,
                     .rows = weights.shape.height * weights.shape.width,
                     .columns = weights.channels,
                     .type = Type::fp32};
  });
}

struct ConvolutionSides {
  Operand x;
  Operand weight;
  ArenaWeights arena;
  Operand bias;  // none without
  Convolution description;
};

/// `sums`: of a description with statistics.
void add_convolution(Lowering& lowering, Phase phase, const std::shared_ptr<const ConvolutionPlan>& plan,
                     const Convolution& description, const Operand& x, const Operand& w, const Operand& y,
                     const Operand& bias, When when = When::always, const ChannelSums& sums = {}) {
  const Operand workspace = lowering.program.make_bytes(plan->workspace());
  std::vector<Operand> reads;
  std::vector<Operand> writes{workspace};
  for (const Operand& operand : {sums.sum, sums.squares})
    if (operand) writes.push_back(operand);
  for (const Operand& operand : {x, w, y, bias})
    if (operand) reads.push_back(operand);
  switch (description.direction) {
    case Direction::forward: std::erase_if(reads, [&](const Operand& o) { return o.is_same_memory(y); }); break;
    case Direction::backward_data: std::erase_if(reads, [&](const Operand& o) { return o.is_same_memory(x); }); break;
    case Direction::backward_weights:
      std::erase_if(reads, [&](const Operand& o) { return o.is_same_memory(w); });
      break;
  }
  writes.push_back(description.direction == Direction::forward         ? y
                   : description.direction == Direction::backward_data ? x
                                                                       : w);
  lowering.program.add(phase, {to_string(description), std::move(reads), std::move(writes),
                               [=](const Addresses& at) -> Work {
                                 return ConvolutionWork{
                                     plan,
                                     {at(x), at(w), at(y), at(bias), nullptr, at(sums.sum), at(sums.squares)},
                                     at(workspace).address};
                               },
                               when});
}

/// Forward in front of a batch norm: where an engine that sums up its statistics is the faster way, training passes use it. Evaluation
/// takes the running values, and has no use for sums.
ChannelSums add_normalised_forward(Lowering& lowering, const ConvolutionSides& sides, const Operand& y) {
  const StatisticsChoice choice = lowering.choices.choose_statistics(sides.description);
  if (!choice.summed) {
    add_convolution(lowering, Phase::forward, choice.apart, sides.description, sides.x, sides.weight, y, sides.bias);
    return {};
  }
  const std::int64_t channels = sides.description.shape.output.channels;
  const ChannelSums sums{lowering.program.make_floats(channels), lowering.program.make_floats(channels)};
  Convolution summed = sides.description;
  summed.statistics = true;
  add_convolution(lowering, Phase::forward, choice.summed, summed, sides.x, sides.weight, y, sides.bias, When::training,
                  sums);
  add_convolution(lowering, Phase::forward, choice.apart, sides.description, sides.x, sides.weight, y, sides.bias,
                  When::evaluation);
  return sums;
}

/// The gradients of weight, bias and input.
Operand add_backward(Lowering& lowering, const LayerContext& context, const ConvolutionSides& sides,
                     const Operand& dz) {
  Convolution description = sides.description;
  description.bias = false;
  description.activation = {};
  if (sides.bias)
    add_column_sums(lowering, dz, description.shape.output.channels,
                    lowering.program.gradient(context.first_parameter + 1));
  description.direction = Direction::backward_weights;
  const Operand dw = sides.arena.is_copy ? lowering.program.make(sides.arena.shape, Type::fp32)
                                         : lowering.program.gradient(context.first_parameter);
  add_convolution(lowering, Phase::backward, lowering.choices.choose({description}).plan, description, sides.x, dw, dz,
                  {});
  if (sides.arena.is_copy) add_gradient_to_arena(lowering, context, sides.arena, dw);
  lowering.program.finish_node(context.node);
  if (!context.input_gradient) return {};
  description.direction = Direction::backward_data;
  const Operand dx = lowering.program.make(description.shape.input, lowering.type);
  add_convolution(lowering, Phase::backward, lowering.choices.choose({description}).plan, description, dx, sides.weight,
                  dz, {});
  return gradient_like(lowering, dx, context.input);
}

}  // namespace

Lowered lower_convolution(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const bool images = node_of(lowering, context).inputs.front() < 0 && layer.groups == 1;
  ConvolutionSides sides;
  TensorShape in = tensor_shape(lowering, context.input_shape);
  if (images) {
    in = images_shape(lowering, context.input_shape);
    sides.x = padded_images(lowering, context.input, in.channels);
  } else {
    sides.x = as_image(lowering, Phase::forward, context.input, in);
  }
  set_layouts(lowering, context, layer, in.channels / layer.groups);
  sides.arena = arena_weights(lowering, layer, in.channels / layer.groups, context.input_shape.channels / layer.groups);
  sides.weight = weight_of(lowering, context, sides.arena);
  if (layer.bias) sides.bias = program.working(context.first_parameter + 1);

  const TensorShape out = tensor_shape(lowering, context.output_shape);
  Convolution& description = sides.description;
  description = {.shape = {in, out, layer.kernel, layer.stride, layer.padding, layer.groups},
                 .type = lowering.type,
                 .math = lowering.math,
                 .bias = layer.bias,
                 .deterministic = lowering.options.deterministic};
  const Operand y = program.make(out, lowering.type);
  // In float32 sums of squares would lose what a pass of its own keeps (gpu/kernels/bodies/channel_sums.hpp). Engines add such sums atomically,
  // in an order that changes from run to run, though cuDNN does not say so of them (measured on an H200).
  const bool summable = context.is_normalised && lowering.options.training && lowering.type != Type::fp32 &&
                        !context.activation && !description.deterministic &&
                        lowering.options.statistics_in_convolutions;
  if (summable) {
    const ChannelSums sums = add_normalised_forward(lowering, sides, y);
    return {.output = y,
            .backward = [=, &lowering](const Operand& dz) -> std::vector<Operand> {
              return {add_backward(lowering, context, sides, dz)};
            },
            .sums = sums};
  }
  // Devices fuse relu with a bias only (Device::plans).
  std::vector<Convolution> descriptions{description};
  const bool fusible = layer.bias && context.activation == nn::Activation::relu;
  if (fusible) {
    descriptions.insert(descriptions.begin(), description);
    descriptions.front().activation = context.activation;
  }
  const auto choice = lowering.choices.choose(descriptions);
  description = descriptions[choice.description];
  add_convolution(lowering, Phase::forward, choice.plan, description, sides.x, sides.weight, y, sides.bias);
  if (context.activation && !description.activation)
    program.add_kernel(Phase::forward, "activation", {y}, {y},
                       [=, f = *context.activation, type = lowering.type](const Addresses& at) {
                         return ActivationForward{f, at(y), at(y), out.size(), type};
                       });
  if (!lowering.options.training) return {y};

  return {y, [=, &lowering](const Operand& output_gradient) -> std::vector<Operand> {
            Operand dz = output_gradient;
            if (context.activation) dz = add_activation_backward(lowering, *context.activation, y, dz);
            return {add_backward(lowering, context, sides, dz)};
          }};
}

}  // namespace troupe::gpu
