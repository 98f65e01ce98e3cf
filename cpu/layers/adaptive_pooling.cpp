// Averages over windows that cover the input. Windows of one size are oneDNN's average pooling; others are Troupe's own loops, which only
// small layers need (the auxiliary heads of GoogLeNet).
#include "cpu/layers/pointwise.hpp"
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

struct Range {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

Range window(std::int64_t i, std::int64_t size, std::int64_t extent) {
  return {i * extent / size, ((i + 1) * extent + size - 1) / size};
}

/// Calls `use(input offset, output offset, 1 / pixels)` for each pixel of each window of one plane.
template <class Use>
void for_each_pixel(const ConvolutionShape& s, const Use& use) {
  for (std::int64_t oy = 0; oy < s.out_height; ++oy)
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      const Range rows = window(oy, s.out_height, s.height);
      const Range columns = window(ox, s.out_width, s.width);
      const float share = 1.0F / static_cast<float>((rows.end - rows.first) * (columns.end - columns.first));
      for (std::int64_t y = rows.first; y < rows.end; ++y)
        for (std::int64_t x = columns.first; x < columns.end; ++x) use(y * s.width + x, oy * s.out_width + ox, share);
    }
}

Lowered lower_uneven(Lowering& lowering, const LayerContext& context, const nn::Shape& output_shape) {
  ProgramBuilder& program = lowering.program;
  const auto source_desc = plain_desc(spatial_dims(lowering, context.input_shape));
  const Operand source = owned(lowering, program.convert(Phase::forward, context.input, source_desc));
  const auto output_desc = plain_desc(spatial_dims(lowering, output_shape));
  const Operand output = program.make(output_desc);
  KernelCall call;
  call.run = adaptive_pool_forward;
  call.name = "adaptive pool forward";
  call.convolution = {.batch = lowering.options.batch,
                      .channels = context.input_shape.channels,
                      .height = context.input_shape.height,
                      .width = context.input_shape.width,
                      .outputs = context.input_shape.channels,
                      .out_height = output_shape.height,
                      .out_width = output_shape.width};
  program.add(Phase::forward, call, {source, output});
  if (!lowering.options.training) return {output, {}};
  call.run = adaptive_pool_backward;
  call.name = "adaptive pool backward";
  return {output, [=, &program](const Operand& output_gradient) -> Operand {
            const Operand dx = program.make(source_desc);
            program.add(Phase::backward, call, {program.convert(Phase::backward, output_gradient, output_desc), dx});
            return dx;
          }};
}

}  // namespace

void adaptive_pool_forward(const KernelCall& call, const StepContext& /*context*/) {
  const ConvolutionShape& s = call.convolution;
  for (std::int64_t plane = 0; plane < s.batch * s.channels; ++plane) {
    const float* x = call.data[0] + plane * s.height * s.width;
    float* y = call.data[1] + plane * s.out_height * s.out_width;
    std::fill(y, y + s.out_height * s.out_width, 0.0F);
    for_each_pixel(s, [&](std::int64_t in, std::int64_t out, float share) { y[out] += x[in] * share; });
  }
}

void adaptive_pool_backward(const KernelCall& call, const StepContext& /*context*/) {
  const ConvolutionShape& s = call.convolution;
  for (std::int64_t plane = 0; plane < s.batch * s.channels; ++plane) {
    const float* dy = call.data[0] + plane * s.out_height * s.out_width;
    float* dx = call.data[1] + plane * s.height * s.width;
    std::fill(dx, dx + s.height * s.width, 0.0F);
    for_each_pixel(s, [&](std::int64_t in, std::int64_t out, float share) { dx[in] += dy[out] * share; });
  }
}

Lowered lower_adaptive_pooling(Lowering& lowering, const LayerContext& context,
                               const nn::AdaptiveAveragePoolLayer& layer) {
  const nn::Shape& in = context.input_shape;
  const nn::Shape& out = lowering.graph.nodes()[static_cast<std::size_t>(context.node)].output;
  if (in.height % layer.size != 0 || in.width % layer.size != 0) return lower_uneven(lowering, context, out);
  const dnnl::memory::dims windows{in.height / layer.size, in.width / layer.size};
  return lower_windows(lowering, context,
                       {dnnl::algorithm::pooling_avg_exclude_padding, windows, windows, {0, 0}, {0, 0}});
}

}  // namespace troupe::cpu
