/// Troupe's own gradients of a convolution followed by 2x2 max pooling, with or without relu in between. At most one of each
/// window's four outputs has a gradient, so three quarters of the dense products are with zeros, or more with relu. From the pooled
/// gradient and the positions of the winners (the maxima):
///   dw[o, :, :, :]              += dp · x[n, :, y … y + kernel, x … x + kernel]      for each winner (n, o, y, x), dp ≠ 0
///   dx[n, :, y … , x … ]        += dp · w[o, :, :, :]
/// with all sums of one output and 16 channels in registers. The dense gradients of pooling and relu are never written. 64 → 128
/// channels 5x5 on 12x12, batch 64, one thread: see bench/step_vs_torch.sh, model cifar. Needs AVX-512. Thread rule: stateless;
/// outputs (dw) and images (dx) are divided among the OpenMP threads, each computed by one thread in fixed order: the same bits for
/// any number of threads.
#pragma once

#include <cstdint>

#include <dnnl.hpp>

#include "cpu/kernels/row_gradient.hpp"
#include "nn/graph.hpp"

namespace troupe::cpu {

inline constexpr const char* kPooledGradient = "troupe:pooled";  // its name in plans; stands for both gradients

/// True if this CPU supports it for this convolution and pooling: 3x3 or 5x5, stride 1, no padding, outputs in whole blocks of 16.
/// Inputs too, or (`images`: no gradient of the input is needed) so few that a kernel's row is within 16 floats.
[[nodiscard]] bool pooled_gradient_fits(const ConvolutionShape& shape, const nn::PoolLayer& pool, bool images) noexcept;

/// The layout of x: [n, c / 16, h, w, 16], or [n, h, w, c] with few channels.
[[nodiscard]] dnnl::memory::desc pooled_gradient_source(const ConvolutionShape& shape);
/// The layout of the convolution's and the pooling's output, and of the winners (oneDNN's, a byte each): [n, o / 16, h, w, 16].
[[nodiscard]] dnnl::memory::desc pooled_gradient_blocked(const dnnl::memory::dims& dims, dnnl::memory::data_type type);
/// The layout of dw and w: [o, c / 16, kernel, kernel, 16], or [o, kernel, 16] with few channels.
[[nodiscard]] dnnl::memory::desc pooled_gradient_weights(const ConvolutionShape& shape);

/// Floats of scratch.
[[nodiscard]] std::size_t pooled_weight_gradient_scratch(const ConvolutionShape& shape) noexcept;
[[nodiscard]] std::size_t pooled_data_gradient_scratch(const ConvolutionShape& shape, int threads) noexcept;

/// KernelCall::run. data: x, dp, pooled outputs (null: no relu), winners, dw, db (null: no bias), scratch.
void pooled_weight_gradient(const KernelCall& call, const StepContext& context);
/// KernelCall::run. data: dp, pooled outputs (null: no relu), winners, w, dx, scratch.
void pooled_data_gradient(const KernelCall& call, const StepContext& context);

// For pooled_gradient.cpp; compiled for AVX-512.

/// A pooled gradient that is not zero, and the offset of its other factor, in floats.
struct Winner {
  float gradient;
  std::int32_t offset;
};

/// to [rows, vectors · 16] += Σ over winners of gradient · from[offset …], rows apart by to_row and from_row floats.
struct Accumulation {
  float* to = nullptr;
  std::int64_t to_row = 0;
  const float* from = nullptr;
  std::int64_t from_row = 0;
  const Winner* winners = nullptr;
  std::int64_t count = 0;
  std::int64_t tail = 16;  // floats of a row's last vector that exist in `from`; the sums beyond do not change
};
using Accumulate = void (*)(const Accumulation&);
/// For kernel² windows of `vectors` vectors per row; null if there is none.
[[nodiscard]] Accumulate accumulate_winners(std::int64_t kernel, std::int64_t vectors) noexcept;

/// The pooled gradients of 16 outputs at one position. A gradient counts if it is not zero and relu passed its output.
struct PooledBlock {
  const float* gradients;
  const float* outputs;         // null: no relu
  const std::uint8_t* winners;  // positions in the window: 0 to 3
};

/// Appends each gradient that counts to its output's list (`next`), at offsets[position]; adds them to `sums`.
void append_winners(const PooledBlock& block, const std::int32_t (&offsets)[4], Winner** next, float* sums) noexcept;

/// The gradients that count, sorted by position in the window.
struct SortedWinners {
  Winner winners[24];  // at most 16; the rest is room for whole vectors
  std::int32_t counts[4];
};
/// Output o has the offset o · stride.
void sort_winners(const PooledBlock& block, std::int32_t stride, SortedWinners& sorted) noexcept;

}  // namespace troupe::cpu
