// A convolution, optionally with relu, followed by max pooling: forward by oneDNN, backward by Troupe's own kernels, which skip the
// gradients that pooling and relu set to zero.
#include "cpu/kernels/pooled_gradient.hpp"
#include "cpu/layers/convolution.hpp"
#include "cpu/layers/convolution_method.hpp"

namespace troupe::cpu {
namespace {

using dnnl::memory;

/// The tensors of one group of layers.
struct PooledTensors {
  Operand input;
  PooledOperands pooled;
  Operand gradient;  // of pooled.output, in its layout
};

/// True if oneDNN chooses the layouts that the kernels read.
bool lies_right(const Lowering& lowering, const ConvolutionShape& shape,
                const dnnl::convolution_forward::primitive_desc& forward, const nn::PoolLayer& pool,
                const nn::Shape& pooled_shape) {
  const memory::desc any(spatial_dims(lowering, pooled_shape), memory::data_type::f32, memory::format_tag::any);
  const memory::dims window{pool.kernel, pool.kernel};
  const memory::dims padding{pool.padding, pool.padding};
  const dnnl::pooling_forward::primitive_desc pooling({dnnl::prop_kind::forward_training, dnnl::algorithm::pooling_max,
                                                       forward.dst_desc(), any, window, window, padding, padding},
                                                      lowering.engine);
  const auto pooled_dims = any.dims();
  const bool images = shape.channels % 16 != 0;
  return (images || same_bytes(forward.src_desc(), pooled_gradient_source(shape))) &&
         forward.dst_desc() == pooled_gradient_blocked(forward.dst_desc().dims(), memory::data_type::f32) &&
         pooling.dst_desc() == pooled_gradient_blocked(pooled_dims, memory::data_type::f32) &&
         pooling.workspace_desc() == pooled_gradient_blocked(pooled_dims, memory::data_type::u8);
}

Operand add_gradients(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                      const PooledTensors& tensors) {
  ProgramBuilder& program = lowering.program;
  const int weight = context.first_parameter;
  KernelCall call;
  call.convolution = shape_of(lowering, context, layer);
  const Operand x =
      owned(lowering, program.convert(Phase::backward, tensors.input, pooled_gradient_source(call.convolution)));
  const Operand passed = context.activation ? tensors.pooled.output : Operand{};
  call.run = pooled_weight_gradient;
  call.name = "pooled weight gradient";
  program.add(Phase::backward, call,
              {x, tensors.gradient, passed, tensors.pooled.winners, program.gradient(weight),
               layer.bias ? program.gradient(weight + 1) : Operand{},
               program.make_floats(pooled_weight_gradient_scratch(call.convolution))});
  program.finish_node(context.node);
  if (!context.input_gradient) return {};
  const Operand dx = program.make(pooled_gradient_source(call.convolution));
  call.run = pooled_data_gradient;
  call.name = "pooled data gradient";
  program.add(Phase::backward, call,
              {tensors.gradient, passed, tensors.pooled.winners, program.parameter(weight), dx,
               program.make_floats(pooled_data_gradient_scratch(call.convolution, lowering.options.threads))});
  return dx;
}

}  // namespace

std::optional<Lowered> lower_pooled_convolution(Lowering& lowering, const LayerContext& context,
                                                const nn::Conv2dLayer& layer, int pool_node) {
  const nn::Node& node = lowering.graph.nodes()[static_cast<std::size_t>(pool_node)];
  const auto& pool = std::get<nn::PoolLayer>(node.layer);
  const ConvolutionShape shape = shape_of(lowering, context, layer);
  bool fits = layer.groups == 1 && (!context.activation || *context.activation == nn::Activation::relu) &&
              lowering.choices.activations() == Activations::blocked && lowering.type == memory::data_type::f32 &&
              pooled_gradient_fits(shape, pool, !context.input_gradient);
  // As for training, even for evaluation only: such replicas share the arena's layout.
  fits = fits && lies_right(lowering, shape, training_hint(lowering, context, layer, {}), pool, node.output);
  if (!lowering.choices.choose_own(use_of(lowering, context.node, "backward_weights"), kPooledGradient, fits, true))
    return std::nullopt;

  const auto forward =
      describe_forward(lowering, context, layer, choose_method(lowering, context, layer, Direction::forward));
  ProgramBuilder& program = lowering.program;
  program.set_parameter_layout(context.first_parameter, pooled_gradient_weights(shape));
  if (layer.bias) program.set_parameter_layout(context.first_parameter + 1, plain_desc({layer.outputs}));
  const Operand source = program.convert(Phase::forward, context.input, forward.src_desc());
  const Operand output = add_forward(lowering, context, layer, forward, source);
  const nn::Shape& convolved = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  PooledTensors tensors{
      source,
      add_pooling(lowering,
                  describe_pooling(lowering, pool_node, output.desc, windows_of(pool, convolved, node.output)), output),
      {}};
  if (!lowering.options.training) return Lowered{tensors.pooled.output, {}};
  const auto dims = tensors.pooled.output.desc.dims();
  if (tensors.pooled.output.desc != pooled_gradient_blocked(dims, memory::data_type::f32) ||
      tensors.pooled.winners.desc != pooled_gradient_blocked(dims, memory::data_type::u8))
    throw NoSuchImplementation{kPooledGradient};  // impossible with the implementations that the plan names
  return Lowered{tensors.pooled.output, [=, &lowering](const Operand& output_gradient) {
                   PooledTensors all = tensors;
                   all.gradient =
                       lowering.program.convert(Phase::backward, output_gradient, tensors.pooled.output.desc);
                   return add_gradients(lowering, context, layer, all);
                 }};
}

}  // namespace troupe::cpu
