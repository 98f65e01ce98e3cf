/// Troupe's own data gradient of a convolution, channels last, for channel counts that oneDNN's kernels pad. oneDNN makes vectors
/// of channels: 20 channels fill 20 of 32 lanes. A row of the kernel over all channels is contiguous too, kernel · channels floats:
/// 5 · 20 fill 100 of 112 lanes. So
///   dx[y + i, x … x + kernel, :] += Σ_o dy[y, x, o] · w[o, i, :, :]      for each kernel row i and output position (y, x)
/// with four output rows at a time in registers. 20 → 50 channels 5x5 on 12x12, batch 64: 0.90 ms against 1.44 ms. Needs AVX-512.
/// Thread rule: stateless; images are divided among the OpenMP threads, each computed by one thread in fixed order.
#pragma once

#include <cstdint>

#include <dnnl.hpp>

#include "cpu/kernels/kernel_call.hpp"

namespace troupe::cpu {

inline constexpr const char* kRowGradient = "troupe:rows";  // its name in plans

/// True if this CPU supports it.
[[nodiscard]] bool row_gradient_available() noexcept;
/// The rule: compares the lanes filled by kernel rows with the lanes filled by channels.
[[nodiscard]] bool row_gradient_pays(const ConvolutionShape& shape) noexcept;
/// The layout of the weights: [kernel row][output][kernel column, channel], each row starting at a multiple of 16 floats.
[[nodiscard]] dnnl::memory::desc row_gradient_weights(const ConvolutionShape& shape);
/// Floats of scratch for `threads` threads.
[[nodiscard]] std::size_t row_gradient_scratch(const ConvolutionShape& shape, int threads) noexcept;

/// KernelCall::run. data: dy, weights, dx, scratch.
void row_gradient(const KernelCall& call, const StepContext& context);

/// One image: adds to x [padded height, padded width, channels]. Needs AVX-512. For row_gradient.cpp.
void row_gradient_image(const ConvolutionShape& shape, const float* dy, const float* weights, float* x) noexcept;

}  // namespace troupe::cpu
