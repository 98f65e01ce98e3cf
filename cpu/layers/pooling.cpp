// Max and average pooling, in their input's layout.
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

/// Padding behind the input along one dimension: what the last window needs; less than in front where a rest is left out.
std::int64_t padding_behind(std::int64_t size, std::int64_t windows, const nn::PoolLayer& layer) {
  return std::max<std::int64_t>(0, (windows - 1) * layer.stride + layer.kernel - size - layer.padding);
}

}  // namespace

Windows windows_of(const nn::PoolLayer& layer, const nn::Shape& input, const nn::Shape& output) {
  return {layer.kind == nn::PoolKind::max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding,
          {layer.kernel, layer.kernel},
          {layer.stride, layer.stride},
          {layer.padding, layer.padding},
          {padding_behind(input.height, output.height, layer), padding_behind(input.width, output.width, layer)}};
}

dnnl::pooling_forward::primitive_desc describe_pooling(Lowering& lowering, int node, const dnnl::memory::desc& source,
                                                       const Windows& windows) {
  const nn::Shape& output_shape = lowering.graph.nodes()[static_cast<std::size_t>(node)].output;
  const dnnl::memory::desc any(spatial_dims(lowering, output_shape), type_of(source), dnnl::memory::format_tag::any);
  const auto kind = lowering.options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return lowering.choices.choose<dnnl::pooling_forward>(
      use_of(lowering, node, "forward"), "",
      {kind, windows.algorithm, source, any, windows.strides, windows.kernel, windows.before, windows.behind},
      attributes(), lowering.engine);
}

PooledOperands add_pooling(Lowering& lowering, const dnnl::pooling_forward::primitive_desc& forward,
                           const Operand& source) {
  ProgramBuilder& program = lowering.program;
  PooledOperands result{program.make(forward.dst_desc()), {}};
  ProgramBuilder::Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, result.output}};
  if (forward.workspace_desc().get_size() > 0) {
    result.winners = program.make(forward.workspace_desc());
    arguments.emplace_back(DNNL_ARG_WORKSPACE, result.winners);
  }
  program.add(Phase::forward, dnnl::pooling_forward(forward), arguments, forward.scratchpad_desc());
  return result;
}

Lowered lower_windows(Lowering& lowering, const LayerContext& context, const Windows& windows) {
  ProgramBuilder& program = lowering.program;
  const Operand source = spatial_input(lowering, context);
  const auto forward = describe_pooling(lowering, context.node, source.desc, windows);
  const PooledOperands pooled = add_pooling(lowering, forward, source);
  if (!lowering.options.training) return {pooled.output, {}};
  ProgramBuilder::Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, pooled.output}};
  if (pooled.winners) arguments.emplace_back(DNNL_ARG_WORKSPACE, pooled.winners);
  program.add_recomputation(pooled.output, dnnl::pooling_forward(forward), std::move(arguments),
                            forward.scratchpad_desc());

  return {pooled.output, [=, &lowering, &program](const Operand& output_gradient) -> Operand {
            if (!context.input_gradient) return {};
            const auto& desc = pooled.output.desc;
            const auto backward = lowering.choices.choose<dnnl::pooling_backward>(
                use_of(lowering, context.node, "backward"), "",
                {windows.algorithm, source.desc, desc, windows.strides, windows.kernel, windows.before, windows.behind},
                attributes(), lowering.engine, forward);
            const Operand input_gradient = program.make(source.desc);
            ProgramBuilder::Arguments arguments{
                {DNNL_ARG_DIFF_DST, program.convert(Phase::backward, output_gradient, desc)},
                {DNNL_ARG_DIFF_SRC, input_gradient}};
            if (pooled.winners) arguments.emplace_back(DNNL_ARG_WORKSPACE, pooled.winners);
            program.add(Phase::backward, dnnl::pooling_backward(backward), arguments, backward.scratchpad_desc());
            return input_gradient;
          }};
}

Lowered lower_pooling(Lowering& lowering, const LayerContext& context, const nn::PoolLayer& layer) {
  const nn::Shape& output = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  return lower_windows(lowering, context, windows_of(layer, context.input_shape, output));
}

}  // namespace troupe::cpu
