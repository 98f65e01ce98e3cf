#include "cpu/layers/convolution_method.hpp"

#include <fmt/format.h>

#include "cpu/kernels/winograd.hpp"

namespace troupe::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Type = dnnl::memory::data_type;

constexpr ConvolutionMethod kWinograd{algorithm::convolution_winograd, Type::f32};
constexpr std::int64_t kBlock = 16;
/// Evaluation takes Winograd's algorithm from this height and width on: with smaller images the edges of the 4x4 tiles cost too much.
constexpr std::int64_t kManyTiles = 14;

/// The dimensions of oneDNN's weights: groups are a dimension of their own.
dnnl::memory::dims weight_dims(const LayerContext& context, const nn::Conv2dLayer& layer) {
  if (layer.groups == 1) return {layer.outputs, context.input_shape.channels, layer.kernel, layer.kernel};
  return {layer.groups, layer.outputs / layer.groups, context.input_shape.channels / layer.groups, layer.kernel,
          layer.kernel};
}

/// What oneDNN's kernels of Winograd's algorithm take.
bool winograd_fits(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer) {
  return lowering.choices.activations() == Activations::blocked && layer.kernel == 3 && layer.stride == 1 &&
         layer.padding <= 1 && layer.groups == 1 && context.input_shape.channels % kBlock == 0 &&
         layer.outputs % kBlock == 0;
}

template <class Primitive>
Candidate candidate_of(const typename Primitive::primitive_desc& desc,
                       std::vector<std::pair<int, dnnl::memory::desc>> arguments) {
  arguments.emplace_back(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  return {Primitive(desc), std::move(arguments), {}};
}

/// The primitive of a direction, with its arguments; none if oneDNN does not have it.
std::optional<Candidate> candidate(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                                   Direction direction, const ConvolutionMethod& method) {
  const Sides s = sides_of(lowering, context, layer, method.type);
  const auto& engine = lowering.engine;
  try {
    if (direction == Direction::forward) {
      const dnnl::convolution_forward::primitive_desc desc(
          {prop_kind::forward_training, method.algorithm, s.source, s.weight, s.bias, s.destination, s.strides,
           s.padding, s.padding},
          attributes(context.activation), engine);
      auto result = candidate_of<dnnl::convolution_forward>(
          desc,
          {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, desc.dst_desc()}});
      if (layer.bias) result.arguments.emplace_back(DNNL_ARG_BIAS, desc.bias_desc());
      return result;
    }
    const auto hint = training_hint(lowering, context, layer, method);
    if (direction == Direction::backward_data) {
      const dnnl::convolution_backward_data::primitive_desc desc(
          {method.algorithm, s.source, s.weight, s.destination, s.strides, s.padding, s.padding}, attributes(), engine,
          hint);
      return candidate_of<dnnl::convolution_backward_data>(desc, {{DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                                                                  {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                                  {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}});
    }
    const dnnl::convolution_backward_weights::primitive_desc desc(
        {method.algorithm, s.source, s.weight_gradient, s.bias, s.destination, s.strides, s.padding, s.padding},
        attributes(), engine, hint);
    if (desc.diff_weights_desc().data.format_kind != dnnl_blocked) return std::nullopt;  // the arena's layout
    auto result =
        candidate_of<dnnl::convolution_backward_weights>(desc, {{DNNL_ARG_SRC, desc.src_desc()},
                                                                {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()},
                                                                {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}});
    if (layer.bias) result.arguments.emplace_back(DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc());
    return result;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

/// What Troupe's own kernel takes.
bool tiles_fit(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
               Direction direction) {
  const bool relu_at_most = !context.activation || *context.activation == nn::Activation::relu;
  return lowering.type == Type::bf16 && layer.groups == 1 && lowering.choices.activations() == Activations::blocked &&
         (direction != Direction::forward || relu_at_most) &&
         winograd_tiles_fit(tiles_shape(shape_of(lowering, context, layer), direction));
}

dnnl::memory::desc floats_desc(std::size_t floats) { return plain_desc({static_cast<std::int64_t>(floats)}); }

/// The call of Troupe's own kernel, with its arguments in order.
Candidate tiles_candidate(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                          Direction direction) {
  const auto input = tiles_desc(lowering, context.input_shape);
  const auto output = tiles_desc(lowering, lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output);
  const auto bias = layer.bias ? plain_desc({layer.outputs}) : dnnl::memory::desc{};
  Candidate result;
  ConvolutionShape& shape = result.kernel.convolution;
  shape = tiles_shape(shape_of(lowering, context, layer), direction);
  if (direction == Direction::backward_weights) {
    result.kernel.run = winograd_weight_gradient;
    result.arguments = {{DNNL_ARG_SRC, input},
                        {DNNL_ARG_DIFF_DST, output},
                        {DNNL_ARG_DIFF_WEIGHTS, winograd_weights(shape)},
                        {DNNL_ARG_DIFF_BIAS, bias},
                        {DNNL_ARG_SCRATCHPAD, floats_desc(winograd_gradient_scratch(shape))}};
    return result;
  }
  const bool forward = direction == Direction::forward;
  result.kernel.run = winograd_convolution;
  result.kernel.fused_relu = forward && context.activation.has_value();
  result.arguments = {{forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, forward ? input : output},
                      {DNNL_ARG_WEIGHTS, floats_desc(winograd_packed_floats(shape))},
                      {DNNL_ARG_BIAS, forward ? bias : dnnl::memory::desc{}},
                      {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, forward ? output : input},
                      {DNNL_ARG_SCRATCHPAD, floats_desc(winograd_scratch(shape, lowering.options.threads))}};
  return result;
}

/// The reorders of activations that computing in another type or layout costs where the neighbours compute as usual.
std::vector<dnnl::reorder::primitive_desc> conversions(const Lowering& lowering, const Candidate& usual,
                                                       const Candidate& winograd) {
  std::vector<dnnl::reorder::primitive_desc> reorders;
  for (const auto& [argument, theirs] : usual.arguments) {
    const auto own = std::ranges::find(winograd.arguments, argument, &std::pair<int, dnnl::memory::desc>::first);
    if (own == winograd.arguments.end()) continue;
    const auto& mine = own->second;
    const bool activation = argument == DNNL_ARG_SRC || argument == DNNL_ARG_DST || argument == DNNL_ARG_DIFF_SRC ||
                            argument == DNNL_ARG_DIFF_DST;
    if (!activation || theirs == mine) continue;
    const bool result = argument == DNNL_ARG_DST || argument == DNNL_ARG_DIFF_SRC;
    reorders.emplace_back(lowering.engine, result ? mine : theirs, lowering.engine, result ? theirs : mine);
  }
  return reorders;
}

}  // namespace

Sides sides_of(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer, Type type) {
  const nn::Shape& output_shape = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  return {spatial_desc(lowering, context.input_shape, type),
          {weight_dims(context, layer), type, dnnl::memory::format_tag::any},
          {weight_dims(context, layer), Type::f32, dnnl::memory::format_tag::any},
          layer.bias ? plain_desc({layer.outputs}) : dnnl::memory::desc{},
          spatial_desc(lowering, output_shape, type),
          {layer.stride, layer.stride},
          {layer.padding, layer.padding}};
}

std::string use_of(const Lowering& lowering, int node, Direction direction) {
  constexpr std::array names{"forward", "backward_data", "backward_weights"};
  return use_of(lowering, node, names[static_cast<std::size_t>(direction)]);
}

dnnl::memory::desc tiles_desc(const Lowering& lowering, const nn::Shape& shape) {
  return {spatial_dims(lowering, shape), Type::bf16, dnnl::memory::format_tag::nChw16c};
}

ConvolutionShape tiles_shape(const ConvolutionShape& shape, Direction direction) {
  return direction == Direction::backward_data ? winograd_data_gradient(shape) : shape;
}

ConvolutionMethod choose_method(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                                Direction direction) {
  const ConvolutionMethod direct{algorithm::convolution_direct, lowering.type};
  const ConvolutionMethod tiles{algorithm::convolution_winograd, lowering.type, true};
  const auto use = use_of(lowering, context.node, direction);
  const bool possible = tiles_fit(lowering, context, layer, direction) && winograd_tiles_available();
  if (lowering.choices.choose_own(use, kWinogradTiles, possible, false)) return tiles;
  if (!winograd_fits(lowering, context, layer)) return direct;
  const auto planned = lowering.choices.planned(use);
  if (!planned.empty()) return planned.find("wino") != planned.npos ? kWinograd : direct;
  if (!lowering.options.measure) return direct;
  const nn::Shape& in = context.input_shape;
  auto winograd = candidate(lowering, context, layer, direction, kWinograd);
  if (!lowering.options.training)
    return winograd && lowering.type == Type::f32 && in.height >= kManyTiles && in.width >= kManyTiles ? kWinograd
                                                                                                       : direct;
  const auto usual = candidate(lowering, context, layer, direction, direct);
  if (!usual) return direct;
  const auto key = fmt::format("{} {}x{}x{} {} {} {}{}", static_cast<int>(direction), in.channels, in.height, in.width,
                               layer.outputs, layer.padding, layer.bias, context.activation.has_value());
  if (winograd) winograd->reorders = conversions(lowering, *usual, *winograd);
  const bool other = winograd && lowering.trials.pays(key, *usual, *winograd);
  if (possible) {
    auto own = tiles_candidate(lowering, context, layer, direction);
    own.reorders = conversions(lowering, *usual, own);
    if (lowering.trials.pays(key + " tiles", other ? *winograd : *usual, own)) return tiles;
  }
  return other ? kWinograd : direct;
}

}  // namespace troupe::cpu
