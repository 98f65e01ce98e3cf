// Layers that touch each value once: activations that are not fused with another layer, and dropout; and the kernels of
// pointwise.hpp.
#include "cpu/layers/pointwise.hpp"

#include <cstring>

#include "cpu/kernels/elementwise.hpp"
#include "cpu/program/lowering.hpp"
#include "nn/dropout.hpp"

namespace troupe::cpu {

void activation_and_bias_backward(const KernelCall& call, const StepContext& /*context*/) {
  const auto backward = elementwise().activation_backward[static_cast<std::size_t>(call.activation)];
  backward(call.data[0], call.data[1], call.data[2], call.rows, call.columns);
}

void bias_backward(const KernelCall& call, const StepContext& /*context*/) {
  elementwise().column_sums(call.data[0], call.data[1], call.rows, call.columns);
}

void dropout_forward(const KernelCall& call, const StepContext& context) {
  const float* x = call.data[0];
  float* mask = call.data[1];
  float* y = call.data[2];
  const auto count = static_cast<std::size_t>(call.rows * call.columns);
  if (!context.training) {
    std::memcpy(y, x, count * sizeof(float));
    return;
  }
  const auto first = static_cast<std::uint64_t>(context.first * call.columns);
  nn::dropout_mask(call.seed, context.lease, call.node, call.rate, {mask, count}, first);
  elementwise().multiply(x, mask, y, count);
}

void dropout_backward(const KernelCall& call, const StepContext& /*context*/) {
  const float* mask = call.data[0];
  float* gradient = call.data[1];
  elementwise().multiply(gradient, mask, gradient, static_cast<std::size_t>(call.rows * call.columns));
}

void update_running_statistics(const KernelCall& call, const StepContext& /*context*/) {
  const auto momentum = static_cast<float>(call.rate);
  const auto unbiased = static_cast<float>(static_cast<double>(call.rows) / static_cast<double>(call.rows - 1));
  for (std::int64_t c = 0; c < call.columns; ++c) {
    call.data[2][c] += momentum * (call.data[0][c] - call.data[2][c]);
    call.data[3][c] += momentum * (call.data[1][c] * unbiased - call.data[3][c]);
  }
}

Lowered lower_activation(Lowering& lowering, const LayerContext& context, nn::Activation activation) {
  ProgramBuilder& program = lowering.program;
  const Operand source = context.input;
  const Operand output = program.make(source.desc);
  const auto kind = lowering.options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto forward = lowering.choices.choose<dnnl::eltwise_forward>(
      use_of(lowering, context.node, "forward"), "", {kind, forward_algorithm(activation), source.desc, 0.0f, 0.0f},
      attributes(), lowering.engine);
  program.add(Phase::forward, dnnl::eltwise_forward(forward), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, output}},
              forward.scratchpad_desc());
  if (!lowering.options.training) return {output, {}};
  return {output, [=, &lowering](const Operand& output_gradient) -> Operand {
            if (!context.input_gradient) return {};
            return add_activation_backward(lowering, context.node, activation, output, output_gradient);
          }};
}

Lowered lower_dropout(Lowering& lowering, const LayerContext& context, const nn::DropoutLayer& layer) {
  if (!lowering.options.training) return {context.input, {}};  // the identity
  ProgramBuilder& program = lowering.program;
  // Dropout counts units in plain order, so the values must be in plain order.
  const auto plain = plain_desc(context.input.desc.dims());
  const Operand source = owned(lowering, program.convert(Phase::forward, context.input, plain));
  const Operand mask = program.make(plain);
  const Operand output = program.make(plain);
  KernelCall call{.run = dropout_forward,
                  .name = "dropout forward",
                  .rows = lowering.options.batch,
                  .columns = context.input_shape.size(),
                  .rate = layer.rate,
                  .seed = lowering.options.seed,
                  .node = context.node};
  program.add(Phase::forward, call, {source, mask, output});
  call.run = dropout_backward;
  call.name = "dropout backward";
  return {output, [=, &lowering, &program](const Operand& output_gradient) -> Operand {
            if (!context.input_gradient) return {};
            const Operand gradient = overwritable(lowering, output_gradient, plain);
            program.add(Phase::backward, call, {mask, gradient});
            return gradient;
          }};
}

}  // namespace troupe::cpu
