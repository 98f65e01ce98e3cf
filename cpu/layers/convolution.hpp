/// What the lowerings of convolutions share (convolution.cpp, pooled_convolution.cpp). Compile time only. Thread rule: one thread.
#pragma once

#include "cpu/program/lowering.hpp"
#include "cpu/kernels/row_gradient.hpp"

namespace troupe::cpu {

[[nodiscard]] ConvolutionShape shape_of(const Lowering& lowering, const Site& site, const nn::Conv2dLayer& layer);

/// The forward primitive, with site.activation computed along.
[[nodiscard]] dnnl::convolution_forward::primitive_desc describe_forward(Lowering& lowering, const Site& site,
                                                                         const nn::Conv2dLayer& layer);
/// oneDNN's own choice for training, whatever the plan and the purpose: the hint that backward primitives want, and what arena layouts
/// may depend on.
[[nodiscard]] dnnl::convolution_forward::primitive_desc training_hint(const Lowering& lowering, const Site& site,
                                                                      const nn::Conv2dLayer& layer);
/// Adds the forward primitive; returns its output. `source` lies as it wants. REQUIRES the parameters' layouts.
[[nodiscard]] Operand add_forward(Lowering& lowering, const Site& site, const nn::Conv2dLayer& layer,
                                  const dnnl::convolution_forward::primitive_desc& forward, const Operand& source);

}  // namespace troupe::cpu
