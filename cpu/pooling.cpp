// Max and average pooling, in the layout that their input has.
#include "cpu/lowering.hpp"

namespace troupe::cpu {

Lowered lower_pooling(Lowering& lowering, const Site& site, const nn::PoolLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const nn::Shape& output_shape = lowering.graph.nodes()[static_cast<std::size_t>(site.node)].output;
  const auto algorithm =
      layer.kind == nn::PoolKind::max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  const dnnl::memory::dims kernel{layer.kernel, layer.kernel};
  const dnnl::memory::dims strides{layer.stride, layer.stride};
  const dnnl::memory::dims padding{layer.padding, layer.padding};
  const bool training = lowering.options.training;

  const Operand source = spatial_input(lowering, site);
  const dnnl::memory::desc any(spatial_dims(lowering, output_shape), dnnl::memory::data_type::f32,
                               dnnl::memory::format_tag::any);
  const auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto forward = lowering.choices.choose<dnnl::pooling_forward>(
      use_of(lowering, site.node, "forward"), "",
      {kind, algorithm, source.desc, any, strides, kernel, padding, padding}, attributes(), lowering.engine);

  const Operand output = program.make(forward.dst_desc());
  ProgramBuilder::Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, output}};
  Operand winners;  // max pooling remembers where each maximum came from
  if (forward.workspace_desc().get_size() > 0) {
    winners = program.make(forward.workspace_desc());
    arguments.emplace_back(DNNL_ARG_WORKSPACE, winners);
  }
  program.add(Phase::forward, dnnl::pooling_forward(forward), arguments, forward.scratchpad_desc());
  if (!training) return {output, {}};

  return {output, [=, &lowering, &program](const Operand& output_gradient) -> Operand {
            if (!site.input_gradient) return {};
            const auto backward = lowering.choices.choose<dnnl::pooling_backward>(
                use_of(lowering, site.node, "backward"), "",
                {algorithm, source.desc, output.desc, strides, kernel, padding, padding}, attributes(), lowering.engine,
                forward);
            const Operand input_gradient = program.make(source.desc);
            ProgramBuilder::Arguments arguments{
                {DNNL_ARG_DIFF_DST, program.convert(Phase::backward, output_gradient, output.desc)},
                {DNNL_ARG_DIFF_SRC, input_gradient}};
            if (winners) arguments.emplace_back(DNNL_ARG_WORKSPACE, winners);
            program.add(Phase::backward, dnnl::pooling_backward(backward), arguments, backward.scratchpad_desc());
            return input_gradient;
          }};
}

}  // namespace troupe::cpu
