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

struct ConvolutionSides {
  Operand x;
  Operand weight;
  Operand bias;  // none without
  Convolution description;
};

void add_convolution(Lowering& lowering, Phase phase, const Choice<ConvolutionPlan>& choice,
                     const Convolution& description, const Operand& x, const Operand& w, const Operand& y,
                     const Operand& bias) {
  const Operand workspace = lowering.program.make_bytes(choice.plan->workspace());
  std::vector<Operand> reads;
  std::vector<Operand> writes{workspace};
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
  lowering.program.add(phase,
                       {to_string(description), std::move(reads), std::move(writes),
                        [=, plan = choice.plan](const Addresses& at) -> Work {
                          return ConvolutionWork{plan, {at(x), at(w), at(y), at(bias), nullptr}, at(workspace).address};
                        }});
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
  add_convolution(lowering, Phase::backward, lowering.choices.choose({description}), description, sides.x,
                  lowering.program.gradient(context.first_parameter), dz, {});
  lowering.program.finish_node(context.node);
  if (!context.input_gradient) return {};
  description.direction = Direction::backward_data;
  const Operand dx = lowering.program.make(description.shape.input, lowering.type);
  add_convolution(lowering, Phase::backward, lowering.choices.choose({description}), description, dx, sides.weight, dz,
                  {});
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
  sides.weight = program.working(context.first_parameter);
  if (layer.bias) sides.bias = program.working(context.first_parameter + 1);

  const TensorShape out = tensor_shape(lowering, context.output_shape);
  Convolution& description = sides.description;
  description = {.shape = {in, out, layer.kernel, layer.stride, layer.padding, layer.groups},
                 .type = lowering.type,
                 .math = lowering.math,
                 .bias = layer.bias,
                 .deterministic = lowering.options.deterministic};
  // Devices fuse relu with a bias only (Device::plans).
  std::vector<Convolution> descriptions{description};
  const bool fusible = layer.bias && context.activation == nn::Activation::relu;
  if (fusible) {
    descriptions.insert(descriptions.begin(), description);
    descriptions.front().activation = context.activation;
  }
  const auto choice = lowering.choices.choose(descriptions);
  description = descriptions[choice.description];
  const Operand y = program.make(out, lowering.type);
  add_convolution(lowering, Phase::forward, choice, description, sides.x, sides.weight, y, sides.bias);
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
