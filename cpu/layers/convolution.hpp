/// Shared code of the lowerings of convolutions (convolution.cpp, pooled_convolution.cpp). Compile time only. Thread rule: one
/// thread.
#pragma once

#include "cpu/kernels/row_gradient.hpp"
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {

[[nodiscard]] ConvolutionShape shape_of(const Lowering& lowering, const LayerContext& context,
                                        const nn::Conv2dLayer& layer);

struct ConvolutionMethod;
/// The forward primitive by this method, fused with site.activation.
[[nodiscard]] dnnl::convolution_forward::primitive_desc describe_forward(Lowering& lowering,
                                                                         const LayerContext& context,
                                                                         const nn::Conv2dLayer& layer,
                                                                         const ConvolutionMethod& method);
/// oneDNN's own choice for training with this method, for any plan and purpose: backward primitives need it as a hint, and arena layouts may depend
/// only on it.
[[nodiscard]] dnnl::convolution_forward::primitive_desc training_hint(const Lowering& lowering,
                                                                      const LayerContext& context,
                                                                      const nn::Conv2dLayer& layer,
                                                                      const ConvolutionMethod& method);
/// Adds the forward primitive; returns its output. `source` has the layout that the primitive needs. REQUIRES the parameters'
/// layouts.
[[nodiscard]] Operand add_forward(Lowering& lowering, const LayerContext& context, const nn::Conv2dLayer& layer,
                                  const dnnl::convolution_forward::primitive_desc& forward, const Operand& source);

}  // namespace troupe::cpu
