// Losses on float32 values in plain order, the order of classes.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {

LoweredLoss lower_loss(Lowering& lowering, const LossInputs& inputs) {
  ProgramBuilder& program = lowering.program;
  const std::int64_t rows = lowering.options.batch;
  const std::int64_t classes = inputs.value.shape.size() / rows;
  const bool training = lowering.options.training;
  LoweredLoss result;
  result.outputs = as_plain(lowering, Phase::forward, inputs.value, Type::fp32);
  const Operand z = result.outputs;
  const Operand row_sums = program.make_bytes(static_cast<std::size_t>(rows) * sizeof(LossSums));
  Operand gradient;
  if (training) {
    gradient = program.make(inputs.value.shape, inputs.gradient_type);
    gradient.is_plain = true;
  }
  const auto add = [&](When when, const Operand& to, double smoothing) {
    std::vector<Operand> writes{inputs.sums, row_sums};
    if (to) writes.push_back(to);
    program.add_kernel(
        Phase::forward, "loss", {z, inputs.labels, inputs.samples}, std::move(writes),
        [=, loss = lowering.graph.loss()](const Addresses& at) {
          return LossKernel{.loss = loss,
                            .z = at(z),
                            .labels = at(inputs.labels),
                            .samples = at(inputs.samples),
                            .gradient = at(to),
                            .sums = at(inputs.sums),
                            .row_sums = at(row_sums),
                            .rows = rows,
                            .classes = classes,
                            .smoothing = smoothing,
                            .weight = static_cast<float>(inputs.weight),
                            .loss_scale = at(inputs.loss_scale),
                            .gradient_type = inputs.gradient_type};
        },
        when);
  };
  if (training) add(When::training, gradient, lowering.options.label_smoothing);
  add(When::evaluation, {}, 0);
  if (training)
    result.gradient = [=, &lowering, value = inputs.value] { return gradient_like(lowering, gradient, value); };
  return result;
}

}  // namespace troupe::gpu
