// Local response normalisation, in its input's layout. oneDNN's formula is that of nn::LrnLayer.
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

/// oneDNN 2.6.3's kernel for AVX-512, channels last, accepts windows of any size but computes wrong data gradients for sizes other
/// than 5 with more than 16 channels.
const char* to_avoid(const nn::LrnLayer& layer) { return layer.size == 5 ? "" : "lrn_jit"; }

}  // namespace

Lowered lower_lrn(Lowering& lowering, const LayerContext& context, const nn::LrnLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const bool training = lowering.options.training;
  const auto algorithm = dnnl::algorithm::lrn_across_channels;
  const auto alpha = static_cast<float>(layer.alpha);
  const auto beta = static_cast<float>(layer.beta);
  const auto k = static_cast<float>(layer.k);

  const Operand source = spatial_input(lowering, context);
  const auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto forward = lowering.choices.choose<dnnl::lrn_forward>(
      use_of(lowering, context.node, "forward"), to_avoid(layer),
      {kind, algorithm, source.desc, layer.size, alpha, beta, k}, attributes(), lowering.engine);
  const Operand output = program.make(forward.dst_desc());
  ProgramBuilder::Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, output}};
  Operand kept;  // state that some implementations keep for backward
  if (forward.workspace_desc().get_size() > 0) {
    kept = program.make(forward.workspace_desc());
    arguments.emplace_back(DNNL_ARG_WORKSPACE, kept);
  }
  program.add(Phase::forward, dnnl::lrn_forward(forward), arguments, forward.scratchpad_desc());
  if (!training) return {output, {}};

  return {output, [=, &lowering, &program](const Operand& output_gradient) -> Operand {
            if (!context.input_gradient) return {};
            const auto backward = lowering.choices.choose<dnnl::lrn_backward>(
                use_of(lowering, context.node, "backward"), to_avoid(layer),
                {algorithm, source.desc, source.desc, layer.size, alpha, beta, k}, attributes(), lowering.engine,
                forward);
            const Operand input_gradient = program.make(backward.diff_src_desc());
            ProgramBuilder::Arguments arguments{
                {DNNL_ARG_SRC, source},
                {DNNL_ARG_DIFF_DST, program.convert(Phase::backward, output_gradient, backward.diff_dst_desc())},
                {DNNL_ARG_DIFF_SRC, input_gradient}};
            if (kept) arguments.emplace_back(DNNL_ARG_WORKSPACE, kept);
            program.add(Phase::backward, dnnl::lrn_backward(backward), arguments, backward.scratchpad_desc());
            return input_gradient;
          }};
}

}  // namespace troupe::cpu
