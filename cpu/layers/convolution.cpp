// Convolutions. The arena holds weights in the layout of oneDNN's weight gradients; forward and data gradient read working copies
// if they need another layout.
#include "cpu/layers/convolution.hpp"

#include "cpu/kernels/winograd.hpp"
#include "cpu/layers/convolution_method.hpp"

namespace troupe::cpu {
namespace {

using dnnl::prop_kind;

constexpr std::int64_t kFewChannels = 4;

/// How the names of oneDNN 2.6.3's kernels begin that compute wrong sums for this convolution; empty: none is known. They are for
/// bfloat16, which is multiplied in pairs:
///   1x1                an odd number of channels to add up, for some sizes of the image
///   weight gradient    a stride that is longer than a row of the image: they add up what was in memory before
std::string_view faulty_kernels(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                                Direction direction) {
  if (lowering.type != dnnl::memory::data_type::bf16) return "";
  if (direction == Direction::backward_weights) return layer.stride > context.input_shape.width ? "jit_bf16" : "";
  const auto added = (direction == Direction::forward ? context.input_shape.channels : layer.outputs) / layer.groups;
  return layer.kernel == 1 && added % 2 == 1 ? "jit_bf16_1x1" : "";
}

/// The primitives of one convolution; without one, a kernel of Troupe's own, or nothing if the gradient is not needed.
struct Descriptors {
  std::optional<dnnl::convolution_forward::primitive_desc> forward;           // none: Winograd's tiles
  std::optional<dnnl::convolution_backward_weights::primitive_desc> weights;  // none: Winograd's tiles
  std::optional<dnnl::convolution_backward_data::primitive_desc> data;
  bool data_by_rows = false;
  bool data_by_tiles = false;
};

void plan_tiles(Lowering& lowering, const LayerContext& context, Direction direction) {
  (void)lowering.choices.choose_own(use_of(lowering, context.node, direction), kWinogradTiles, true, true);
}

Descriptors describe(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer) {
  Descriptors result;
  if (const auto method = choose_method(lowering, context, layer, Direction::forward); method.tiles)
    plan_tiles(lowering, context, Direction::forward);
  else
    result.forward = describe_forward(lowering, context, layer, method);

  // Backward descriptors need the plain forward one as a hint. The one of the weights is needed without training too: it decides
  // the arena's layout, which replicas for evaluation share.
  if (const auto method = choose_method(lowering, context, layer, Direction::backward_weights); method.tiles) {
    plan_tiles(lowering, context, Direction::backward_weights);
  } else {
    const Sides s = sides_of(lowering, context, layer, method.type);
    result.weights = lowering.choices.choose<dnnl::convolution_backward_weights>(
        use_of(lowering, context.node, Direction::backward_weights),
        faulty_kernels(lowering, context, layer, Direction::backward_weights),
        {method.algorithm, s.source, s.weight_gradient, s.bias, s.destination, s.strides, s.padding, s.padding},
        attributes(), lowering.engine, training_hint(lowering, context, layer, method));
  }
  if (!lowering.options.training || !context.input_gradient) return result;
  const auto use = use_of(lowering, context.node, Direction::backward_data);
  const bool rows = lowering.choices.activations() == Activations::channels_last && row_gradient_available() &&
                    layer.groups == 1 && lowering.type == dnnl::memory::data_type::f32;
  result.data_by_rows =
      lowering.choices.choose_own(use, kRowGradient, rows, row_gradient_pays(shape_of(lowering, context, layer)));
  if (result.data_by_rows) return result;
  const auto method = choose_method(lowering, context, layer, Direction::backward_data);
  result.data_by_tiles = method.tiles;
  if (method.tiles) {
    plan_tiles(lowering, context, Direction::backward_data);
    return result;
  }
  const Sides s = sides_of(lowering, context, layer, method.type);
  result.data = lowering.choices.choose<dnnl::convolution_backward_data>(
      use, faulty_kernels(lowering, context, layer, Direction::backward_data),
      {method.algorithm, s.source, s.weight, s.destination, s.strides, s.padding, s.padding}, attributes(),
      lowering.engine, training_hint(lowering, context, layer, method));
  return result;
}

/// Adds Troupe's own kernel for one direction; returns its result. REQUIRES the parameters' layouts.
Operand add_tiles(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer, Direction direction,
                  const Operand& input) {
  ProgramBuilder& program = lowering.program;
  const bool forward = direction == Direction::forward;
  const Phase phase = forward ? Phase::forward : Phase::backward;
  const nn::Shape& output_shape = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  const ConvolutionShape shape = shape_of(lowering, context, layer);
  KernelCall call;
  call.convolution = tiles_shape(shape, direction);
  call.name = "pack weights";
  call.run = forward ? winograd_pack : winograd_pack_rotated;
  const auto floats = static_cast<std::int64_t>(winograd_packed_floats(call.convolution));
  const Operand packed = program.keep(plain_desc({floats}));
  program.add(Phase::refresh, call, {program.parameter_as(context.first_parameter, winograd_weights(shape)), packed});

  call.name = "convolution";
  call.run = winograd_convolution;
  call.fused_relu = forward && context.activation.has_value();
  const Operand source =
      program.convert(phase, input, tiles_desc(lowering, forward ? context.input_shape : output_shape));
  const Operand result = program.make(tiles_desc(lowering, forward ? output_shape : context.input_shape));
  Operand bias;
  if (forward && layer.bias) bias = program.parameter_as(context.first_parameter + 1, plain_desc({layer.outputs}));
  program.add(phase, call,
              {source, packed, bias, result,
               program.make_floats(winograd_scratch(call.convolution, lowering.options.threads))});
  return result;
}

Operand add_own_data_gradient(Lowering& lowering, const LayerContext& context, const ConvolutionShape& shape,
                              const Operand& gradient) {
  ProgramBuilder& program = lowering.program;
  const nn::Shape& output_shape = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  const Operand dy = program.convert(Phase::backward, gradient, spatial_desc(lowering, output_shape));
  const Operand dx = program.make(spatial_desc(lowering, context.input_shape));
  const Operand weights = program.parameter_as(context.first_parameter, row_gradient_weights(shape));
  const std::size_t scratch = row_gradient_scratch(shape, lowering.options.threads);
  KernelCall call;
  call.run = row_gradient;
  call.name = "row gradient";
  call.convolution = shape;
  program.add(Phase::backward, call, {dy, weights, dx, scratch > 0 ? program.make_floats(scratch) : Operand{}});
  return dx;
}

Operand add_data_gradient(Lowering& lowering, const LayerContext& context,
                          const dnnl::convolution_backward_data::primitive_desc& data, const Operand& gradient) {
  ProgramBuilder& program = lowering.program;
  const Operand dx = program.make(data.diff_src_desc());
  program.add(Phase::backward, dnnl::convolution_backward_data(data),
              {{DNNL_ARG_DIFF_DST, program.convert(Phase::backward, gradient, data.diff_dst_desc())},
               {DNNL_ARG_WEIGHTS, program.parameter_as(context.first_parameter, data.weights_desc())},
               {DNNL_ARG_DIFF_SRC, dx}},
              data.scratchpad_desc());
  return dx;
}

/// Sets the arena layouts. Grouped weights are plain: canonical tensors have four dimensions, and a layout of oneDNN with five need
/// not be one with four. The cost is a copy of the gradient, which is small beside the gradient's arithmetic.
void set_layouts(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                 const Descriptors& descriptors) {
  const auto weight = descriptors.weights ? descriptors.weights->diff_weights_desc()
                                          : winograd_weights(shape_of(lowering, context, layer));
  const auto plain =
      plain_desc({layer.outputs, context.input_shape.channels / layer.groups, layer.kernel, layer.kernel});
  lowering.program.set_parameter_layout(context.first_parameter, layer.groups == 1 ? weight : plain);
  if (layer.bias)
    lowering.program.set_parameter_layout(context.first_parameter + 1, descriptors.weights
                                                                           ? descriptors.weights->diff_bias_desc()
                                                                           : plain_desc({layer.outputs}));
}

void add_weight_gradient(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                         const dnnl::convolution_backward_weights::primitive_desc& weights, const Operand& source,
                         const Operand& gradient) {
  ProgramBuilder& program = lowering.program;
  const auto desc = weights.diff_weights_desc();
  const Operand arena = program.gradient(context.first_parameter);
  const bool direct = same_bytes(arena.desc, desc);
  const Operand target = direct ? arena.viewed_as(desc) : program.make(desc);
  ProgramBuilder::Arguments arguments{
      {DNNL_ARG_SRC, program.convert(Phase::backward, source, weights.src_desc())},
      {DNNL_ARG_DIFF_DST, program.convert(Phase::backward, gradient, weights.diff_dst_desc())},
      {DNNL_ARG_DIFF_WEIGHTS, target}};
  if (layer.bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, program.gradient(context.first_parameter + 1));
  program.add(Phase::backward, dnnl::convolution_backward_weights(weights), arguments, weights.scratchpad_desc());
  if (!direct) program.copy(Phase::backward, target, arena.viewed_as(plain_desc(desc.dims())));
  program.finish_node(context.node);
}

void add_weight_gradient_by_tiles(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                                  const Operand& source, const Operand& gradient) {
  ProgramBuilder& program = lowering.program;
  const nn::Shape& output_shape = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  KernelCall call;
  call.run = winograd_weight_gradient;
  call.name = "convolution";
  call.convolution = shape_of(lowering, context, layer);
  program.add(Phase::backward, call,
              {program.convert(Phase::backward, source, tiles_desc(lowering, context.input_shape)),
               program.convert(Phase::backward, gradient, tiles_desc(lowering, output_shape)),
               program.gradient(context.first_parameter),
               layer.bias ? program.gradient(context.first_parameter + 1) : Operand{},
               program.make_floats(winograd_gradient_scratch(call.convolution))});
  program.finish_node(context.node);
}

}  // namespace

ConvolutionShape shape_of(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer) {
  const nn::Shape& output = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  return {lowering.options.batch,
          context.input_shape.channels,
          context.input_shape.height,
          context.input_shape.width,
          layer.outputs,
          output.height,
          output.width,
          layer.kernel,
          layer.stride,
          layer.padding};
}

dnnl::convolution_forward::primitive_desc describe_forward(Lowering& lowering, const LayerContext& context,
                                                           const nn::Conv2dLayer& layer,
                                                           const ConvolutionMethod& method) {
  // brgconv multiplies [pixels, channels] by [channels, outputs]; with the few channels of images that product is too narrow (1 →
  // 20 channels 5x5 on 28x28, batch 64: 478 µs against 328 µs of the direct kernel).
  const bool few = context.input_shape.channels / layer.groups < kFewChannels;
  const auto faulty = faulty_kernels(lowering, context, layer, Direction::forward);
  const auto avoid = !faulty.empty() ? faulty : few ? "brgconv" : "";
  const auto kind = lowering.options.training ? prop_kind::forward_training : prop_kind::forward_inference;
  const Sides s = sides_of(lowering, context, layer, method.type);
  return lowering.choices.choose<dnnl::convolution_forward>(
      use_of(lowering, context.node, Direction::forward), avoid,
      {kind, method.algorithm, s.source, s.weight, s.bias, s.destination, s.strides, s.padding, s.padding},
      attributes(context.activation), lowering.engine);
}

dnnl::convolution_forward::primitive_desc training_hint(const Lowering& lowering, const LayerContext& context,
                                                        const nn::Conv2dLayer& layer, const ConvolutionMethod& method) {
  const Sides s = sides_of(lowering, context, layer, method.type);
  return {{prop_kind::forward_training, method.algorithm, s.source, s.weight, s.bias, s.destination, s.strides,
           s.padding, s.padding},
          lowering.engine};
}

Operand add_forward(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                    const dnnl::convolution_forward::primitive_desc& forward, const Operand& source) {
  ProgramBuilder& program = lowering.program;
  const Operand output = program.make(forward.dst_desc());
  ProgramBuilder::Arguments arguments{
      {DNNL_ARG_SRC, source},
      {DNNL_ARG_WEIGHTS, program.parameter_as(context.first_parameter, forward.weights_desc())},
      {DNNL_ARG_DST, output}};
  if (layer.bias)
    arguments.emplace_back(DNNL_ARG_BIAS, program.parameter_as(context.first_parameter + 1, forward.bias_desc()));
  program.add(Phase::forward, dnnl::convolution_forward(forward), arguments, forward.scratchpad_desc());
  return output;
}

Lowered lower_convolution(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer) {
  const Descriptors descriptors = describe(lowering, context, layer);
  set_layouts(lowering, context, layer, descriptors);
  // Backward reads the same copy of the input.
  const Operand source = lowering.program.convert(
      Phase::forward, context.input,
      descriptors.forward ? descriptors.forward->src_desc() : tiles_desc(lowering, context.input_shape));
  const Operand output = descriptors.forward ? add_forward(lowering, context, layer, *descriptors.forward, source)
                                             : add_tiles(lowering, context, layer, Direction::forward, source);
  if (!lowering.options.training) return {output, {}};

  return {output, [=, &lowering](const Operand& output_gradient) -> Operand {
            Operand gradient = output_gradient;
            if (context.activation)
              gradient = add_activation_backward(lowering, context.node, *context.activation, output, gradient);
            if (descriptors.weights)
              add_weight_gradient(lowering, context, layer, *descriptors.weights, source, gradient);
            else
              add_weight_gradient_by_tiles(lowering, context, layer, source, gradient);
            if (descriptors.data_by_rows)
              return add_own_data_gradient(lowering, context, shape_of(lowering, context, layer), gradient);
            if (descriptors.data_by_tiles)
              return add_tiles(lowering, context, layer, Direction::backward_data, gradient);
            if (descriptors.data) return add_data_gradient(lowering, context, *descriptors.data, gradient);
            return {};
          }};
}

}  // namespace troupe::cpu
