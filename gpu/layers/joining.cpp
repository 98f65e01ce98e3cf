// Layers with several inputs: sums, with a relu that follows fused, and channels side by side.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {
namespace {

Draft copied(const char* what, const Operand& from, std::int64_t from_first, const Operand& to, std::int64_t to_first,
             std::int64_t channels) {
  return ProgramBuilder::kernel_draft(what, {from}, {to}, [=](const Addresses& at) {
    return CopyChannels{.from = at(from),
                        .to = at(to),
                        .from_channels = from.shape.channels,
                        .from_first = from_first,
                        .to_channels = to.shape.channels,
                        .to_first = to_first,
                        .channels = channels,
                        .pixels = to.shape.pixels(),
                        .type = to.type};
  });
}

}  // namespace

Lowered lower_add(Lowering& lowering, const LayerContext& context, const std::vector<Operand>& inputs) {
  const TensorShape shape = tensor_shape(lowering, context.output_shape);
  std::vector<Operand> terms;
  for (const Operand& input : inputs) terms.push_back(as_image(lowering, Phase::forward, input, shape));
  const Operand y = lowering.program.make(shape, lowering.type);
  add_up(lowering, Phase::forward, terms, y, context.activation.has_value());
  if (!lowering.options.training) return {y};
  return {y, [=, &lowering](const Operand& dy) {
            const Operand dz = context.activation ? add_activation_backward(lowering, *context.activation, y, dy) : dy;
            std::vector<Operand> gradients;
            for (const Operand& input : inputs) gradients.push_back(gradient_like(lowering, dz, input));
            return gradients;
          }};
}

Lowered lower_concat(Lowering& lowering, const LayerContext& context, const std::vector<Operand>& inputs) {
  ProgramBuilder& program = lowering.program;
  const auto shapes = lowering.graph.inputs_of(node_of(lowering, context));
  const Operand y = program.make(tensor_shape(lowering, context.output_shape), lowering.type);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Operand x = as_image(lowering, Phase::forward, inputs[i], tensor_shape(lowering, shapes[i]));
    const Draft draft = copied("concat", x, 0, y, first, shapes[i].channels);
    program.add(Phase::forward, draft);
    if (lowering.options.training) program.add_recomputation(y, draft);
    first += shapes[i].channels;
  }
  if (!lowering.options.training) return {y};
  return {y, [=, &lowering, &program](const Operand& dy) {
            std::vector<Operand> gradients;
            std::int64_t cut = 0;
            const auto& sources = node_of(lowering, context).inputs;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
              Operand dx;
              if (lowering.graph.needs_gradient(sources[i])) {
                dx = program.make(tensor_shape(lowering, shapes[i]), lowering.type);
                program.add(Phase::backward, copied("cut", dy, cut, dx, 0, shapes[i].channels));
                dx = gradient_like(lowering, dx, inputs[i]);
              }
              cut += shapes[i].channels;
              gradients.push_back(dx);
            }
            return gradients;
          }};
}

}  // namespace troupe::gpu
