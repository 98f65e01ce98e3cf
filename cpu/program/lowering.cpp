#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

/// Backward from the output alone, so that forward may overwrite the activation's input.
dnnl::algorithm backward_algorithm(nn::Activation activation) {
  switch (activation) {
    case nn::Activation::relu: return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    case nn::Activation::sigmoid: return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    case nn::Activation::tanh: return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
  }
  return dnnl::algorithm::undef;
}

}  // namespace

dnnl::algorithm forward_algorithm(nn::Activation activation) {
  switch (activation) {
    case nn::Activation::relu: return dnnl::algorithm::eltwise_relu;
    case nn::Activation::sigmoid: return dnnl::algorithm::eltwise_logistic;
    case nn::Activation::tanh: return dnnl::algorithm::eltwise_tanh;
  }
  return dnnl::algorithm::undef;
}

dnnl::memory::dims spatial_dims(const Lowering& lowering, const nn::Shape& shape) {
  return {lowering.options.batch, shape.channels, shape.height, shape.width};
}

Operand spatial_input(Lowering& lowering, const LayerContext& context) {
  const auto dims = spatial_dims(lowering, context.input_shape);
  if (context.input.desc.dims() == dims) return context.input;
  return lowering.program.convert(Phase::forward, context.input, plain_desc(dims));
}

dnnl::memory::desc spatial_desc(const Lowering& lowering, const nn::Shape& shape) {
  return spatial_desc(lowering, shape, lowering.type);
}

dnnl::memory::desc spatial_desc(const Lowering& lowering, const nn::Shape& shape, dnnl::memory::data_type type) {
  const auto tag = lowering.choices.activations() == Activations::channels_last ? dnnl::memory::format_tag::nhwc
                                                                                : dnnl::memory::format_tag::any;
  return {spatial_dims(lowering, shape), type, tag};
}

dnnl::primitive_attr attributes(std::optional<nn::Activation> activation) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (activation) {
    dnnl::post_ops post_ops;
    post_ops.append_eltwise(1.0f, forward_algorithm(*activation), 0.0f, 0.0f);
    attributes.set_post_ops(post_ops);
  }
  return attributes;
}

std::string use_of(const Lowering& lowering, int node, const char* direction) {
  return lowering.graph.nodes()[static_cast<std::size_t>(node)].name + "." + direction;
}

Operand add_activation_backward(Lowering& lowering, int node, nn::Activation activation, const Operand& output,
                                const Operand& output_gradient) {
  const auto algorithm = backward_algorithm(activation);
  const Operand gradient = overwritable(lowering, output_gradient, output.desc);
  const dnnl::eltwise_forward::primitive_desc forward(
      dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, algorithm, output.desc, 0.0f, 0.0f),
      lowering.engine);
  const auto backward = lowering.choices.choose<dnnl::eltwise_backward>(
      use_of(lowering, node, "activation_backward"), "", {algorithm, output.desc, output.desc, 0.0f, 0.0f},
      attributes(), lowering.engine, forward);
  lowering.program.add(Phase::backward, dnnl::eltwise_backward(backward),
                       {{DNNL_ARG_DST, output}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_SRC, gradient}},
                       backward.scratchpad_desc());
  return gradient;
}

Operand overwritable(Lowering& lowering, const Operand& gradient, const dnnl::memory::desc& wanted) {
  const Operand converted = lowering.program.convert(Phase::backward, gradient, wanted);
  if (!lowering.gradient_is_shared || converted.index != gradient.index) return converted;
  const Operand copy = lowering.program.make(wanted);
  lowering.program.copy(Phase::backward, converted, copy);
  return copy;
}

Operand owned(Lowering& lowering, const Operand& operand) {
  if (operand.place != Place::input) return operand;
  const Operand copy = lowering.program.make(operand.desc);
  const dnnl::reorder::primitive_desc reorder(lowering.engine, operand.desc, lowering.engine, operand.desc,
                                              attributes());
  lowering.program.add(Phase::forward, dnnl::reorder(reorder), {{DNNL_ARG_FROM, operand}, {DNNL_ARG_TO, copy}},
                       reorder.scratchpad_desc());
  return copy;
}

}  // namespace troupe::cpu
