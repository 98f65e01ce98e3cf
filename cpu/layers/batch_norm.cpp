// Batch normalisation, in its input's layout, fused with a relu that follows. Training step and evaluation are two primitives on
// the same operands: one computes the batch's mean and variance, the other takes the running ones.
#include "cpu/layers/pointwise.hpp"
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

using dnnl::normalization_flags;

/// The tensors of one layer.
struct NormTensors {
  Operand source;
  Operand output;
  Operand mean;      // of the batch
  Operand variance;  // of the batch
  Operand positive;  // the outputs that relu passed
};

Operand running(const Lowering& lowering, const LayerContext& context, int which) {
  return lowering.program.statistic(context.first_statistic + which, context.input_shape.channels);
}

dnnl::batch_normalization_forward::desc describe_with_statistics(const nn::BatchNormLayer& layer,
                                                                 normalization_flags flags,
                                                                 const NormTensors& tensors) {
  return {dnnl::prop_kind::forward_inference, tensors.source.desc, static_cast<float>(layer.epsilon),
          flags | normalization_flags::use_global_stats};
}

ProgramBuilder::Arguments with_statistics(const Lowering& lowering, const LayerContext& context,
                                          const NormTensors& tensors, const Operand& mean, const Operand& variance) {
  return {{DNNL_ARG_SRC, tensors.source},
          {DNNL_ARG_MEAN, mean},
          {DNNL_ARG_VARIANCE, variance},
          {DNNL_ARG_SCALE, lowering.program.parameter(context.first_parameter)},
          {DNNL_ARG_SHIFT, lowering.program.parameter(context.first_parameter + 1)},
          {DNNL_ARG_DST, tensors.output}};
}

/// The normalisation of evaluation, with the running mean and variance.
void add_evaluation(Lowering& lowering, const LayerContext& context, const nn::BatchNormLayer& layer,
                    normalization_flags flags, const NormTensors& tensors) {
  const auto descriptor = lowering.choices.choose<dnnl::batch_normalization_forward>(
      use_of(lowering, context.node, "evaluate"), "", describe_with_statistics(layer, flags, tensors), attributes(),
      lowering.engine);
  lowering.program.add(
      Phase::forward, dnnl::batch_normalization_forward(descriptor),
      with_statistics(lowering, context, tensors, running(lowering, context, 0), running(lowering, context, 1)),
      descriptor.scratchpad_desc(), When::evaluation);
}

/// Backward may compute the output of a training step again from the batch's mean and variance, with the implementation of the step: others
/// round otherwise.
void add_recomputation(Lowering& lowering, const LayerContext& context, const nn::BatchNormLayer& layer,
                       normalization_flags flags, const NormTensors& tensors, std::string_view implementation) {
  const auto description = describe_with_statistics(layer, flags, tensors);  // lives as long as its iterator moves
  dnnl::batch_normalization_forward::primitive_desc descriptor(description, attributes(), lowering.engine);
  while (descriptor.impl_info_str() != implementation)
    if (!descriptor.next_impl()) return;
  lowering.program.add_recomputation(tensors.output, dnnl::batch_normalization_forward(descriptor),
                                     with_statistics(lowering, context, tensors, tensors.mean, tensors.variance),
                                     descriptor.scratchpad_desc());
}

/// Backward updates the running values, so that a step that fails on a label does not change them.
void add_update(Lowering& lowering, const LayerContext& context, const nn::BatchNormLayer& layer,
                const NormTensors& tensors) {
  const nn::Shape& shape = context.input_shape;
  KernelCall call;
  call.run = update_running_statistics;
  call.name = "update running statistics";
  call.rows = lowering.options.batch * shape.height * shape.width;
  call.columns = shape.channels;
  call.rate = layer.momentum;
  lowering.program.add(Phase::backward, call,
                       {tensors.mean, tensors.variance, running(lowering, context, 0), running(lowering, context, 1)});
}

}  // namespace

Lowered lower_batch_norm(Lowering& lowering, const LayerContext& context, const nn::BatchNormLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const auto per_channel = plain_desc({context.input_shape.channels});
  const int weight = context.first_parameter;
  const int bias = weight + 1;
  const auto epsilon = static_cast<float>(layer.epsilon);
  program.set_parameter_layout(weight, per_channel);
  program.set_parameter_layout(bias, per_channel);
  auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  if (context.activation) flags |= normalization_flags::fuse_norm_relu;

  NormTensors tensors;
  tensors.source = spatial_input(lowering, context);
  tensors.output = program.make(tensors.source.desc);
  if (lowering.options.training) {
    tensors.mean = program.make(per_channel);
    tensors.variance = program.make(per_channel);
  }
  add_evaluation(lowering, context, layer, flags, tensors);
  if (!lowering.options.training) return {tensors.output, {}};

  const auto forward = lowering.choices.choose<dnnl::batch_normalization_forward>(
      use_of(lowering, context.node, "forward"), "",
      {dnnl::prop_kind::forward_training, tensors.source.desc, epsilon, flags}, attributes(), lowering.engine);
  ProgramBuilder::Arguments arguments{{DNNL_ARG_SRC, tensors.source},
                                      {DNNL_ARG_DST, tensors.output},
                                      {DNNL_ARG_MEAN, tensors.mean},
                                      {DNNL_ARG_VARIANCE, tensors.variance},
                                      {DNNL_ARG_SCALE, program.parameter(weight)},
                                      {DNNL_ARG_SHIFT, program.parameter(bias)}};
  if (forward.workspace_desc().get_size() > 0) {
    tensors.positive = program.make(forward.workspace_desc());
    arguments.emplace_back(DNNL_ARG_WORKSPACE, tensors.positive);
  }
  program.add(Phase::forward, dnnl::batch_normalization_forward(forward), arguments, forward.scratchpad_desc(),
              When::training);
  add_recomputation(lowering, context, layer, flags, tensors, forward.impl_info_str());

  return {tensors.output, [=, &lowering, &program](const Operand& output_gradient) -> Operand {
            const auto& desc = tensors.source.desc;
            const auto backward = lowering.choices.choose<dnnl::batch_normalization_backward>(
                use_of(lowering, context.node, "backward"), "", {dnnl::prop_kind::backward, desc, desc, epsilon, flags},
                attributes(), lowering.engine, forward);
            add_update(lowering, context, layer, tensors);
            const Operand input_gradient = program.make(desc);
            ProgramBuilder::Arguments arguments{
                {DNNL_ARG_SRC, tensors.source},
                {DNNL_ARG_MEAN, tensors.mean},
                {DNNL_ARG_VARIANCE, tensors.variance},
                {DNNL_ARG_SCALE, program.parameter(weight)},
                {DNNL_ARG_SHIFT, program.parameter(bias)},  // unused, but oneDNN 2.6 refuses to run without it
                {DNNL_ARG_DIFF_DST, program.convert(Phase::backward, output_gradient, desc)},
                {DNNL_ARG_DIFF_SRC, input_gradient},
                {DNNL_ARG_DIFF_SCALE, program.gradient(weight)},
                {DNNL_ARG_DIFF_SHIFT, program.gradient(bias)}};
            if (tensors.positive) arguments.emplace_back(DNNL_ARG_WORKSPACE, tensors.positive);
            program.add(Phase::backward, dnnl::batch_normalization_backward(backward), arguments,
                        backward.scratchpad_desc());
            program.finish_node(context.node);
            return context.input_gradient ? input_gradient : Operand{};
          }};
}

}  // namespace troupe::cpu
