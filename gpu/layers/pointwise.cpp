// Layers that touch each value once: activations that are not fused with another layer, and dropout.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {
namespace {

/// The order of values does not matter: images stay in plain order, in the precision's type.
Operand in_its_order(Lowering& lowering, const LayerContext& context) {
  if (!context.input.is_plain) return context.input;
  return as_image(lowering, Phase::forward, context.input, context.input.shape);
}

}  // namespace

Lowered lower_activation(Lowering& lowering, const LayerContext& context, nn::Activation activation) {
  const Operand x = in_its_order(lowering, context);
  const Operand y = lowering.program.make(x.shape, x.type);
  lowering.program.add_kernel(Phase::forward, "activation", {x}, {y}, [=](const Addresses& at) {
    return ActivationForward{activation, at(x), at(y), x.shape.size(), x.type};
  });
  if (!lowering.options.training) return {y};
  return {y, [=, &lowering](const Operand& dy) -> std::vector<Operand> {
            if (!context.input_gradient) return {Operand{}};
            return {add_activation_backward(lowering, activation, y, dy)};
          }};
}

Lowered lower_dropout(Lowering& lowering, const LayerContext& context, const nn::DropoutLayer& layer,
                      const Operand& key) {
  if (!lowering.options.training) return {context.input};  // the identity
  ProgramBuilder& program = lowering.program;
  const Operand x = in_its_order(lowering, context);
  const Operand y = program.make(x.shape, x.type);
  const auto add = [=, &program, seed = lowering.options.seed](Phase phase, const char* what, const Operand& from,
                                                               const Operand& to, When when) {
    program.add_kernel(
        phase, what, {from, key}, {to},
        [=](const Addresses& at) {
          return Dropout{.x = at(from),
                         .y = at(to),
                         .key = at(key),
                         .seed = seed,
                         .node = context.node,
                         .shape = x.shape,
                         .rate = layer.rate,
                         .type = x.type};
        },
        when);
  };
  add(Phase::forward, "dropout", x, y, When::training);
  program.copy(Phase::forward, x, y, When::evaluation);
  return {y, [=, &lowering](const Operand& dy) -> std::vector<Operand> {
            if (!context.input_gradient) return {Operand{}};
            const Operand dx = target_for(lowering, dy);
            add(Phase::backward, "dropout backward", dy, dx, When::always);
            return {dx};
          }};
}

}  // namespace troupe::gpu
