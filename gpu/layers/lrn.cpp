// Local response normalisation.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {

Lowered lower_lrn(Lowering& lowering, const LayerContext& context, const nn::LrnLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const TensorShape shape = tensor_shape(lowering, context.input_shape);
  const Type type = lowering.type;
  const Operand x = as_image(lowering, Phase::forward, context.input, shape);
  const Operand y = program.make(shape, type);
  program.add_kernel(Phase::forward, "lrn", {x}, {y}, [=](const Addresses& at) {
    return LrnForward{at(x), at(y), shape, layer, type};
  });
  if (!lowering.options.training) return {y};
  return {y, [=, &lowering, &program](const Operand& dy) -> std::vector<Operand> {
            if (!context.input_gradient) return {Operand{}};
            const Operand dx = program.make(shape, type);
            program.add_kernel(Phase::backward, "lrn backward", {x, dy}, {dx}, [=](const Addresses& at) {
              return LrnBackward{at(x), at(dy), at(dx), shape, layer, type};
            });
            return {gradient_like(lowering, dx, context.input)};
          }};
}

}  // namespace troupe::gpu
