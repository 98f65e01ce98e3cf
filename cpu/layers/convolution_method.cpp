#include "cpu/layers/convolution_method.hpp"

#include <fmt/format.h>

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

/// The reorders of activations that computing in float32 costs where the neighbours compute in `type`.
std::vector<dnnl::reorder::primitive_desc> conversions(const Lowering& lowering, const Candidate& usual,
                                                       const Candidate& winograd) {
  std::vector<dnnl::reorder::primitive_desc> reorders;
  for (std::size_t i = 0; i < usual.arguments.size(); ++i) {
    const auto& [argument, theirs] = usual.arguments[i];
    const auto& mine = winograd.arguments[i].second;
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

ConvolutionMethod choose_method(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                                Direction direction) {
  const ConvolutionMethod direct{algorithm::convolution_direct, lowering.type};
  if (!winograd_fits(lowering, context, layer)) return direct;
  const auto planned = lowering.choices.planned(use_of(lowering, context.node, direction));
  if (!planned.empty()) return planned.find("wino") != planned.npos ? kWinograd : direct;
  if (!lowering.options.measure) return direct;
  auto winograd = candidate(lowering, context, layer, direction, kWinograd);
  if (!winograd) return direct;
  const nn::Shape& in = context.input_shape;
  if (!lowering.options.training)
    return lowering.type == Type::f32 && in.height >= kManyTiles && in.width >= kManyTiles ? kWinograd : direct;
  const auto usual = candidate(lowering, context, layer, direction, direct);
  if (!usual) return direct;
  winograd->reorders = conversions(lowering, *usual, *winograd);
  const auto key = fmt::format("{} {}x{}x{} {} {} {}{}", static_cast<int>(direction), in.channels, in.height, in.width,
                               layer.outputs, layer.padding, layer.bias, context.activation.has_value());
  return lowering.trials.pays(key, *usual, *winograd) ? kWinograd : direct;
}

}  // namespace troupe::cpu
