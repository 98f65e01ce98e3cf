// Layers with several inputs: sums, with a relu that follows fused, and channels side by side.
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

using dnnl::memory;

/// All inputs in the layout of the first.
std::vector<Operand> alike(Lowering& lowering, const std::vector<Operand>& inputs) {
  std::vector<Operand> operands;
  for (const Operand& input : inputs)
    operands.push_back(lowering.program.convert(Phase::forward, input, inputs.front().desc));
  return operands;
}

/// The part [first, first + channels) of `desc`'s second dimension, in place; empty where its layout has no such part.
memory::desc channels_of(const memory::desc& desc, std::int64_t first, std::int64_t channels) {
  memory::dims extents = desc.dims();
  memory::dims offsets(extents.size(), 0);
  extents[1] = channels;
  offsets[1] = first;
  return desc.submemory_desc(extents, offsets, /*allow_empty=*/true);
}

/// Whether the layout has a part for the channels of each of `shapes`.
bool cuts_well(const memory::desc& desc, const std::vector<nn::Shape>& shapes) {
  std::int64_t first = 0;
  for (const nn::Shape& shape : shapes) {
    if (channels_of(desc, first, shape.channels).is_zero()) return false;
    first += shape.channels;
  }
  return true;
}

Operand add_sum(Lowering& lowering, const std::vector<Operand>& operands, std::optional<nn::Activation> activation) {
  ProgramBuilder& program = lowering.program;
  const auto& desc = operands.front().desc;
  const Operand output = program.make(desc);
  if (operands.size() == 2) {
    const dnnl::binary::primitive_desc binary({dnnl::algorithm::binary_add, desc, desc, desc}, attributes(activation),
                                              lowering.engine);
    program.add(Phase::forward, dnnl::binary(binary),
                {{DNNL_ARG_SRC_0, operands[0]}, {DNNL_ARG_SRC_1, operands[1]}, {DNNL_ARG_DST, output}},
                binary.scratchpad_desc());
  } else {
    add_up(lowering, Phase::forward, operands, output);
  }
  return output;
}

}  // namespace

void add_up(Lowering& lowering, Phase phase, const std::vector<Operand>& operands, const Operand& to) {
  const std::vector<memory::desc> descs(operands.size(), to.desc);
  const dnnl::sum::primitive_desc sum(to.desc, std::vector<float>(operands.size(), 1.0F), descs, lowering.engine,
                                      attributes());
  ProgramBuilder::Arguments arguments{{DNNL_ARG_DST, to}};
  for (std::size_t i = 0; i < operands.size(); ++i)
    arguments.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), operands[i]);
  lowering.program.add(phase, dnnl::sum(sum), std::move(arguments), sum.scratchpad_desc());
}

LoweredJoin lower_add(Lowering& lowering, const LayerContext& context, const std::vector<Operand>& inputs) {
  const Operand output = add_sum(lowering, alike(lowering, inputs), context.activation);
  if (!lowering.options.training) return {output, {}};
  return {output, [=, &lowering, count = inputs.size()](const Operand& output_gradient) {
            const Operand gradient =
                context.activation
                    ? add_activation_backward(lowering, context.node, *context.activation, output, output_gradient)
                    : output_gradient;
            return std::vector<Operand>(count, gradient);
          }};
}

LoweredJoin lower_concat(Lowering& lowering, const LayerContext& context, const std::vector<Operand>& inputs) {
  ProgramBuilder& program = lowering.program;
  const auto type = type_of(inputs.front().desc);
  const auto shapes = lowering.graph.inputs_of(lowering.graph.nodes()[static_cast<std::size_t>(context.node)]);
  std::vector<Operand> sources;  // all with height and width: a vector is one pixel
  std::vector<memory::desc> descs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto dims = spatial_dims(lowering, shapes[i]);
    const bool fits = inputs[i].desc.dims() == dims && type_of(inputs[i].desc) == type;
    sources.push_back(fits ? inputs[i] : program.convert(Phase::forward, inputs[i], plain_desc(dims, type)));
    descs.push_back(sources.back().desc);
  }
  const dnnl::concat::primitive_desc concat(/*concat_dimension=*/1, descs, lowering.engine, attributes());
  const Operand output = program.make(concat.dst_desc());
  ProgramBuilder::Arguments arguments{{DNNL_ARG_DST, output}};
  for (std::size_t i = 0; i < sources.size(); ++i)
    arguments.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), sources[i]);
  program.add(Phase::forward, dnnl::concat(concat), arguments, concat.scratchpad_desc());
  if (!lowering.options.training) return {output, {}};
  program.add_recomputation(output, dnnl::concat(concat), std::move(arguments), concat.scratchpad_desc());

  return {output, [=, &program](const Operand& output_gradient) {
            Operand whole = output_gradient;
            if (whole.desc.dims() != output.desc.dims()) whole = program.convert(Phase::backward, whole, output.desc);
            if (!cuts_well(whole.desc, shapes))
              whole = program.convert(Phase::backward, whole, plain_desc(whole.desc.dims(), type_of(whole.desc)));
            std::vector<Operand> gradients;
            std::int64_t first = 0;
            for (std::size_t i = 0; i < sources.size(); ++i) {
              gradients.push_back(program.make(sources[i].desc));
              program.copy(Phase::backward, whole.viewed_as(channels_of(whole.desc, first, shapes[i].channels)),
                           gradients.back());
              first += shapes[i].channels;
            }
            return gradients;
          }};
}

}  // namespace troupe::cpu
