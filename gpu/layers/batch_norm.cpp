// Batch normalisation, fused with a sum and a relu that follow. A training step computes the batch's mean and deviation, evaluation takes
// the running ones. Labels are checked before a step begins, so that forward may move the running values.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {
namespace {

struct NormTensors {
  Operand x{};
  Operand y{};
  Operand addend{};     // none: no sum
  Operand mean{};       // of the batch
  Operand deviation{};  // of the batch: 1 / sqrt(σ² + epsilon)
  ChannelSums sums{};   // that the convolution in front left; none: x is summed up here
  Operand weight{};
  Operand bias{};
  Operand running_mean{};
  Operand running_variance{};
  TensorShape shape{};
  nn::BatchNormLayer layer{};
  bool relu = false;
};

void add_statistics(Lowering& lowering, const NormTensors& t) {
  const std::int64_t pixels = t.shape.pixels();
  const std::int64_t channels = t.shape.channels;
  const bool summed = static_cast<bool>(t.sums.sum);
  Operand scratch;
  if (!summed) scratch = lowering.program.make_floats(static_cast<std::int64_t>(batch_norm_scratch(pixels, channels)));
  std::vector<Operand> reads{t.x};
  std::vector<Operand> writes{t.mean, t.deviation};
  for (const Operand& operand : {t.sums.sum, t.sums.squares, scratch})
    if (operand) reads.push_back(operand);
  if (scratch) writes.push_back(scratch);
  lowering.program.add_kernel(
      Phase::forward, summed ? "batch statistics of sums" : "batch statistics", std::move(reads), std::move(writes),
      [=](const Addresses& at) {
        return BatchStatistics{.x = at(t.x),
                               .mean = at(t.mean),
                               .inverse_deviation = at(t.deviation),
                               .running_mean = at(t.running_mean),
                               .running_variance = at(t.running_variance),
                               .scratch = at(scratch),
                               .pixels = pixels,
                               .channels = channels,
                               .epsilon = static_cast<float>(t.layer.epsilon),
                               .momentum = static_cast<float>(t.layer.momentum),
                               .type = t.x.type,
                               .sum = at(t.sums.sum),
                               .squares = at(t.sums.squares)};
      },
      When::training);
}

Draft normalisation(const NormTensors& t, bool evaluation) {
  const Operand mean = evaluation ? t.running_mean : t.mean;
  const Operand deviation = evaluation ? t.running_variance : t.deviation;
  std::vector<Operand> reads{t.x, mean, deviation};
  if (t.addend) reads.push_back(t.addend);
  return ProgramBuilder::kernel_draft(
      "batch norm", std::move(reads), {t.y},
      [=](const Addresses& at) {
        return BatchNormForward{.x = at(t.x),
                                .y = at(t.y),
                                .addend = at(t.addend),
                                .weight = at(t.weight),
                                .bias = at(t.bias),
                                .mean = at(mean),
                                .inverse_deviation = at(deviation),
                                .evaluation = evaluation,
                                .relu = t.relu,
                                .epsilon = static_cast<float>(t.layer.epsilon),
                                .pixels = t.shape.pixels(),
                                .channels = t.shape.channels,
                                .type = t.x.type};
      },
      evaluation ? When::evaluation : When::training);
}

/// The gradients of weight and bias; `dx` and `daddend` unless they are none.
void add_norm_backward(Lowering& lowering, const NormTensors& t, const Operand& dy, int first_parameter,
                       const Operand& dx, const Operand& daddend) {
  ProgramBuilder& program = lowering.program;
  const std::int64_t pixels = t.shape.pixels();
  const std::int64_t channels = t.shape.channels;
  const Operand dweight = program.gradient(first_parameter);
  const Operand dbias = program.gradient(first_parameter + 1);
  const Operand scratch = program.make_floats(static_cast<std::int64_t>(batch_norm_scratch(pixels, channels)));
  const bool reads_output = t.relu && t.addend;
  const auto gradients = [=](const Addresses& at) {
    return BatchNormGradients{.x = at(t.x),
                              .y = reads_output ? static_cast<const void*>(at(t.y)) : nullptr,
                              .dy = at(dy),
                              .mean = at(t.mean),
                              .inverse_deviation = at(t.deviation),
                              .weight_gradient = at(dweight),
                              .bias_gradient = at(dbias),
                              .scratch = at(scratch),
                              .relu = t.relu,
                              .pixels = pixels,
                              .channels = channels,
                              .type = t.x.type,
                              .weight = at(t.weight),
                              .bias = at(t.bias)};
  };
  std::vector<Operand> reads{t.x, dy, t.mean, t.deviation};
  if (reads_output) reads.push_back(t.y);
  program.add_kernel(Phase::backward, "batch norm gradients", reads, {dweight, dbias, scratch}, gradients);
  if (!dx && !daddend) return;
  std::vector<Operand> writes;
  for (const Operand& operand : {dx, daddend})
    if (operand) writes.push_back(operand);
  program.add_kernel(Phase::backward, "batch norm backward", std::move(reads), std::move(writes),
                     [=](const Addresses& at) {
                       BatchNormGradients all = gradients(at);
                       all.scratch = nullptr;
                       return BatchNormBackward{all, at(t.weight), at(dx), at(daddend)};
                     });
}

}  // namespace

Lowered lower_batch_norm(Lowering& lowering, const LayerContext& context, const nn::BatchNormLayer& layer,
                         const Operand& addend) {
  ProgramBuilder& program = lowering.program;
  const std::int64_t channels = context.input_shape.channels;
  for (const int parameter : {context.first_parameter, context.first_parameter + 1})
    program.set_parameter_layout(parameter, {1}, channels);
  NormTensors t{.sums = context.sums,
                .weight = program.parameter(context.first_parameter),
                .bias = program.parameter(context.first_parameter + 1),
                .running_mean = program.statistic(context.first_statistic),
                .running_variance = program.statistic(context.first_statistic + 1),
                .shape = tensor_shape(lowering, context.input_shape),
                .layer = layer,
                .relu = context.activation.has_value()};
  t.x = as_image(lowering, Phase::forward, context.input, t.shape);
  if (addend) t.addend = as_image(lowering, Phase::forward, addend, t.shape);
  t.y = program.make(t.shape, lowering.type);
  if (lowering.options.training) {
    t.mean = program.make_floats(channels);
    t.deviation = program.make_floats(channels);
    add_statistics(lowering, t);
    program.add(Phase::forward, normalisation(t, false));
  }
  program.add(Phase::forward, normalisation(t, true));
  if (!lowering.options.training) return {t.y};
  program.add_recomputation(t.y, normalisation(t, false));

  return {t.y, [=, &lowering, &program](const Operand& dy) -> std::vector<Operand> {
            const Operand dx = context.input_gradient ? program.make(t.shape, lowering.type) : Operand{};
            // Without relu the addend's gradient is dy itself; with it, dy where relu passed, which may be written over dy.
            const Operand daddend = t.addend && t.relu ? target_for(lowering, dy) : Operand{};
            add_norm_backward(lowering, t, dy, context.first_parameter, dx, daddend);
            lowering.program.finish_node(context.node);
            const Operand input = dx ? gradient_like(lowering, dx, context.input) : dx;
            if (!t.addend) return {input};
            return {input, gradient_like(lowering, t.relu ? daddend : dy, addend)};
          }};
}

}  // namespace troupe::gpu
