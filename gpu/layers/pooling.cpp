// Max, average and adaptive pooling.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {

Lowered lower_pooling(Lowering& lowering, const LayerContext& context, const nn::PoolLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const TensorShape in = tensor_shape(lowering, context.input_shape);
  const TensorShape out = tensor_shape(lowering, context.output_shape);
  const Type type = lowering.type;
  const Operand x = as_image(lowering, Phase::forward, context.input, in);
  const Operand y = program.make(out, type);
  const bool training = lowering.options.training;
  Operand winners;
  if (training && layer.kind == nn::PoolKind::max)
    winners = program.make_bytes(static_cast<std::size_t>(out.size()) * sizeof(std::int32_t));
  const auto pool = [=](const Addresses& at, const Operand& input, const Operand& output) {
    return PoolForward{.kind = layer.kind,
                       .x = at(input),
                       .y = at(output),
                       .winners = at(winners),
                       .input = in,
                       .output = out,
                       .kernel = layer.kernel,
                       .stride = layer.stride,
                       .padding = layer.padding,
                       .type = type};
  };
  std::vector<Operand> writes{y};
  if (winners) writes.push_back(winners);
  const auto forward = [=](const Addresses& at) { return pool(at, x, y); };
  program.add_kernel(Phase::forward, "pool", {x}, writes, forward);
  if (!training) return {y};
  program.add_recomputation(y, ProgramBuilder::kernel_draft("pool", {x}, writes, forward));

  return {y, [=, &lowering, &program](const Operand& dy) -> std::vector<Operand> {
            if (!context.input_gradient) return {Operand{}};
            const Operand dx = program.make(in, type);
            std::vector<Operand> reads{dy};
            if (winners) reads.push_back(winners);
            program.add_kernel(Phase::backward, "pool backward", reads, {dx},
                               [=](const Addresses& at) { return PoolBackward{pool(at, dx, dy)}; });
            return {gradient_like(lowering, dx, context.input)};
          }};
}

Lowered lower_adaptive_pooling(Lowering& lowering, const LayerContext& context) {
  ProgramBuilder& program = lowering.program;
  const TensorShape in = tensor_shape(lowering, context.input_shape);
  const TensorShape out = tensor_shape(lowering, context.output_shape);
  const Type type = lowering.type;
  const Operand x = as_image(lowering, Phase::forward, context.input, in);
  const Operand y = program.make(out, type);
  program.add_kernel(Phase::forward, "adaptive pool", {x}, {y}, [=](const Addresses& at) {
    return AdaptivePoolForward{at(x), at(y), in, out, type};
  });
  if (!lowering.options.training) return {y};
  return {y, [=, &lowering, &program](const Operand& dy) -> std::vector<Operand> {
            if (!context.input_gradient) return {Operand{}};
            const Operand dx = program.make(in, type);
            program.add_kernel(Phase::backward, "adaptive pool backward", {dy}, {dx}, [=](const Addresses& at) {
              return AdaptivePoolBackward{{at(dx), at(dy), in, out, type}};
            });
            return {gradient_like(lowering, dx, context.input)};
          }};
}

}  // namespace troupe::gpu
