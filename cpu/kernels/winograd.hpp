/// Winograd's algorithm F(2x2, 3x3) in bfloat16, which oneDNN does not have (Lavin & Gray 2016, "Fast algorithms for convolutional neural
/// networks"): 16 multiplications for 4 outputs of a 3x3 convolution with stride 1, in place of 36. For each tile of 2x2 outputs
///   Y = Aᵀ [ Σ_c (G w Gᵀ) ⊙ (Bᵀ d B) ] A,    d: the 4x4 inputs of the tile
/// where the sum over channels is 16 matrix products of bfloat16 with float32 sums. Transforms compute in float32; their results are rounded
/// to bfloat16 once. Error beside exact arithmetic, normal inputs and weights, 64 to 512 channels: 0.35 % of the outputs' deviation; a direct
/// convolution, which rounds the weights only: 0.17 %; F(4x4, 3x3) would be at 1.0 to 2.4 %.
/// Tensors are oneDNN's nChw16c, weights OIhw16i16o in float32. Needs AVX-512 with its bfloat16 instructions. A chunk of tiles is transformed,
/// multiplied and transformed back within the L2 cache.
/// Thread rule: stateless; chunks are divided among the OpenMP threads. Every sum has a fixed order: bits do not depend on the threads.
#pragma once

#include <cstdint>

#include <dnnl.hpp>

#include "cpu/kernels/kernel_call.hpp"

namespace troupe::cpu {

inline constexpr const char* kWinogradTiles = "troupe:winograd_2x2";  // its name in plans

/// True if this CPU has the instructions.
[[nodiscard]] bool winograd_tiles_available() noexcept;
/// 3x3, stride 1, padding of 0 to 2, channels and outputs multiples of 16.
[[nodiscard]] bool winograd_tiles_fit(const ConvolutionShape& shape) noexcept;
/// The shape of the convolution that computes the data gradient: outputs become channels, the kernel is rotated.
[[nodiscard]] ConvolutionShape winograd_data_gradient(const ConvolutionShape& shape) noexcept;
/// The arena's weights as the kernels read them.
[[nodiscard]] dnnl::memory::desc winograd_weights(const ConvolutionShape& shape);
/// Floats of the transformed weights, and of scratch for `threads` threads.
[[nodiscard]] std::size_t winograd_packed_floats(const ConvolutionShape& shape) noexcept;
[[nodiscard]] std::size_t winograd_scratch(const ConvolutionShape& shape, int threads) noexcept;

/// KernelCall::run. data: weights of the forward convolution (winograd_weights), packed. The shape is that of the convolution that will
/// read `packed`: itself, or with _rotated its data gradient's.
void winograd_pack(const KernelCall& call, const StepContext& context);
void winograd_pack_rotated(const KernelCall& call, const StepContext& context);
/// KernelCall::run. data: x, packed, bias [outputs] (float32, or null), y, scratch. KernelCall::fused_relu: y ← max(y, 0).
void winograd_convolution(const KernelCall& call, const StepContext& context);

/// KernelCall::run. data: x, dy, weight gradient (winograd_weights), bias gradient [outputs] (or null), scratch. F(3x3, 2x2): tiles of 4x4
/// inputs and 2x2 output gradients; sums over tiles are float32.
void winograd_weight_gradient(const KernelCall& call, const StepContext& context);
/// Floats of its scratch, for any number of threads.
[[nodiscard]] std::size_t winograd_gradient_scratch(const ConvolutionShape& shape) noexcept;

/// The inner loops, for winograd.cpp. Tiles are numbered image by image, row by row.
struct WinogradTiles {
  const ConvolutionShape* shape = nullptr;
  const std::uint16_t* x = nullptr;
  const std::uint16_t* packed = nullptr;
  const float* bias = nullptr;
  std::uint16_t* y = nullptr;
  bool relu = false;
};
/// Computes tiles [first, first + count); count ≤ winograd_chunk(). `scratch` is one thread's.
void winograd_chunk_of(const WinogradTiles& tiles, std::int64_t first, std::int64_t count, float* scratch) noexcept;
/// Packs block `outputs` (16 outputs of the reading convolution) of the weights.
void winograd_pack_block(const ConvolutionShape& shape, const float* weights, std::uint16_t* packed,
                         std::int64_t outputs, bool rotated) noexcept;
/// Tiles of a chunk.
[[nodiscard]] std::int64_t winograd_chunk(const ConvolutionShape& shape) noexcept;

/// Of the weight gradient, one chunk of `count` tiles from `first` on; pairs of tiles are multiplied together, an odd count ends with a tile of
/// zeros. `to` is [16 positions][blocks][pairs of a chunk][16 channels][2].
struct WinogradGradientTiles {
  const ConvolutionShape* shape = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
};
inline constexpr std::int64_t kWinogradGradientChunk = 96;  // tiles; even
/// Transforms 16 channels of x.
void winograd_transform_inputs(const WinogradGradientTiles& tiles, const std::uint16_t* x, std::int64_t block,
                               std::uint16_t* to) noexcept;
/// Transforms 16 outputs of dy; adds their sums over the chunk to bias_gradient (null: not).
void winograd_transform_gradients(const WinogradGradientTiles& tiles, const std::uint16_t* dy, std::int64_t block,
                                  std::uint16_t* to, float* bias_gradient) noexcept;
/// sums [outputs / 16][channels][16] of one position: adds the products of a chunk for 16 channels, or with `begin` sets them.
void winograd_multiply_chunk(const WinogradGradientTiles& tiles, const std::uint16_t* inputs,
                             const std::uint16_t* gradients, std::int64_t block, float* sums, bool begin) noexcept;
/// The weight gradient of 16 outputs, from sums [position][outputs / 16][channels][16].
void winograd_write_gradient(const ConvolutionShape& shape, const float* sums, std::int64_t block,
                             float* gradient) noexcept;

}  // namespace troupe::cpu
