/// HostDevice's convolutions and matrix products: the definitions of gpu/device/products.hpp as loops. float32 sums in a fixed order, rounded
/// to the type at the end; tf32 rounds the operands. Stateless.
#pragma once

#include "gpu/device/products.hpp"

namespace troupe::gpu::host {

void convolve(const Convolution& convolution, const ConvolutionOperands& operands);
void multiply(const MatrixProduct& product, const MatrixOperands& operands);

/// activation(x), or x
[[nodiscard]] float activated(float x, const std::optional<nn::Activation>& activation) noexcept;

}  // namespace troupe::gpu::host
