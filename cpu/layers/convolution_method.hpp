/// How one direction of a convolution is computed: directly in the precision's type; by Winograd's algorithm F(4x4, 3x3) in float32, which has
/// a quarter of the multiplications of a 3x3 convolution but transforms its tensors (Lavin & Gray 2016, "Fast algorithms for convolutional
/// neural networks"); or, in bfloat16, by F(2x2, 3x3) with bfloat16 products (cpu/kernels/winograd.hpp). Compile time only. Thread rule: one
/// thread.
#pragma once

#include "cpu/layers/convolution.hpp"

namespace troupe::cpu {

enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

struct ConvolutionMethod {
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
  dnnl::memory::data_type type =
      dnnl::memory::data_type::f32;  // of the activations and of the working copy of the weights
  bool tiles = false;                // Troupe's own kernel, kWinogradTiles
};

/// The arguments of oneDNN's descriptors of one convolution.
struct Sides {
  dnnl::memory::desc source;
  dnnl::memory::desc weight;
  dnnl::memory::desc weight_gradient;  // float32 in every precision, as the arena
  dnnl::memory::desc bias;             // empty: no bias
  dnnl::memory::desc destination;
  dnnl::memory::dims strides;
  dnnl::memory::dims padding;
};
[[nodiscard]] Sides sides_of(const Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                             dnnl::memory::data_type type);

/// "conv2.backward_data": the key of the direction's choice.
[[nodiscard]] std::string use_of(const Lowering& lowering, int node, Direction direction);

/// The layout of activations that Troupe's own kernel reads and writes.
[[nodiscard]] dnnl::memory::desc tiles_desc(const Lowering& lowering, const nn::Shape& shape);
/// The convolution that this direction is for the kernel: the forward one, or that of the data gradient.
[[nodiscard]] ConvolutionShape tiles_shape(const ConvolutionShape& shape, Direction direction);

/// From the plan; without one, for training, by measurement where Winograd's algorithm is possible. Evaluation alone never measures, so
/// that it computes the same bits at any time: it takes Winograd's algorithm for larger images. Direct without CompileOptions::measure.
[[nodiscard]] ConvolutionMethod choose_method(Lowering& lowering, const LayerContext& context,
                                              const nn::Conv2dLayer& layer, Direction direction);

}  // namespace troupe::cpu
