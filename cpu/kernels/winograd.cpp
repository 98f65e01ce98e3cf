#include "cpu/kernels/winograd.hpp"

#include <omp.h>

#include <algorithm>

#include "core/buffer.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kPositions = 16;  // of a transformed tile
constexpr std::int64_t kGroup = 6;       // tiles that are multiplied together; a chunk is a multiple
constexpr std::int64_t kOutputBlock = 64;

std::int64_t tiles_of(const ConvolutionShape& shape) {
  return shape.batch * ((shape.out_height + 1) / 2) * ((shape.out_width + 1) / 2);
}

void pack(const KernelCall& call, bool rotated) {
  const ConvolutionShape& shape = call.convolution;
  auto* packed = reinterpret_cast<std::uint16_t*>(call.data[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < shape.outputs / kLanes; ++block)
    winograd_pack_block(shape, call.data[0], packed, block, rotated);
}

}  // namespace

bool winograd_tiles_available() noexcept {
  return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}

bool winograd_tiles_fit(const ConvolutionShape& shape) noexcept {
  return shape.kernel == 3 && shape.stride == 1 && shape.padding >= 0 && shape.padding <= 2 && shape.channels > 0 &&
         shape.channels % kLanes == 0 && shape.outputs > 0 && shape.outputs % kLanes == 0;
}

ConvolutionShape winograd_data_gradient(const ConvolutionShape& shape) noexcept {
  return {shape.batch,  shape.outputs, shape.out_height, shape.out_width, shape.channels,
          shape.height, shape.width,   shape.kernel,     shape.stride,    shape.kernel - 1 - shape.padding};
}

dnnl::memory::desc winograd_weights(const ConvolutionShape& shape) {
  return {{shape.outputs, shape.channels, 3, 3}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::OIhw16i16o};
}

std::size_t winograd_packed_floats(const ConvolutionShape& shape) noexcept {
  return static_cast<std::size_t>(kPositions * shape.channels * shape.outputs / 2);
}

std::int64_t winograd_chunk(const ConvolutionShape& shape) noexcept {
  // Transformed inputs take 32 bytes a channel and tile, products 4 kB a tile: together less than 800 KiB of the L2 cache.
  constexpr std::int64_t kMost = 96;
  constexpr std::int64_t kLeast = 24;
  constexpr std::int64_t kChannelsTimesTiles = 12288;
  const std::int64_t tiles = std::clamp(kChannelsTimesTiles / shape.channels, kLeast, kMost) / kGroup * kGroup;
  return std::min(tiles, (tiles_of(shape) + kGroup - 1) / kGroup * kGroup);
}

std::size_t winograd_scratch(const ConvolutionShape& shape, int threads) noexcept {
  const std::int64_t inputs = kPositions * winograd_chunk(shape) * shape.channels / 2;
  const std::int64_t products = kPositions * winograd_chunk(shape) * kOutputBlock;
  return static_cast<std::size_t>(inputs + products) * static_cast<std::size_t>(threads);
}

void winograd_pack(const KernelCall& call, const StepContext& /*context*/) { pack(call, false); }
void winograd_pack_rotated(const KernelCall& call, const StepContext& /*context*/) { pack(call, true); }

void winograd_convolution(const KernelCall& call, const StepContext& /*context*/) {
  const ConvolutionShape& shape = call.convolution;
  const WinogradTiles tiles{&shape,
                            reinterpret_cast<const std::uint16_t*>(call.data[0]),
                            reinterpret_cast<const std::uint16_t*>(call.data[1]),
                            call.data[2],
                            reinterpret_cast<std::uint16_t*>(call.data[3]),
                            call.fused_relu};
  const std::int64_t all = tiles_of(shape);
  const std::int64_t chunk = winograd_chunk(shape);
  const std::size_t own = winograd_scratch(shape, 1);
#pragma omp parallel for schedule(static)
  for (std::int64_t first = 0; first < all; first += chunk)
    winograd_chunk_of(tiles, first, std::min(chunk, all - first),
                      call.data[4] + own * static_cast<std::size_t>(omp_get_thread_num()));
}

std::size_t winograd_gradient_scratch(const ConvolutionShape& shape) noexcept {
  const std::int64_t transformed = kPositions * kWinogradGradientChunk * (shape.channels + shape.outputs) / 2;
  return static_cast<std::size_t>(transformed + kPositions * shape.channels * shape.outputs);
}

void winograd_weight_gradient(const KernelCall& call, const StepContext& /*context*/) {
  const ConvolutionShape& shape = call.convolution;
  const auto* x = reinterpret_cast<const std::uint16_t*>(call.data[0]);
  const auto* dy = reinterpret_cast<const std::uint16_t*>(call.data[1]);
  float* const bias_gradient = call.data[3];
  const std::int64_t channel_blocks = shape.channels / kLanes;
  const std::int64_t output_blocks = shape.outputs / kLanes;
  auto* inputs = reinterpret_cast<std::uint16_t*>(call.data[4]);
  auto* gradients = inputs + kPositions * kWinogradGradientChunk * shape.channels;
  float* const sums = call.data[4] + kPositions * kWinogradGradientChunk * (shape.channels + shape.outputs) / 2;
  if (bias_gradient != nullptr) std::fill_n(bias_gradient, shape.outputs, 0.0F);
    // One thread adds each sum, chunk after chunk. The loops end with barriers.
#pragma omp parallel
  for (std::int64_t first = 0; first < tiles_of(shape); first += kWinogradGradientChunk) {
    const WinogradGradientTiles tiles{&shape, first, std::min(kWinogradGradientChunk, tiles_of(shape) - first)};
#pragma omp for schedule(static)
    for (std::int64_t block = 0; block < channel_blocks + output_blocks; ++block) {
      if (block < channel_blocks)
        winograd_transform_inputs(tiles, x, block, inputs);
      else
        winograd_transform_gradients(tiles, dy, block - channel_blocks, gradients, bias_gradient);
    }
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < kPositions * channel_blocks; ++part) {
      const std::int64_t position = part / channel_blocks;
      winograd_multiply_chunk(tiles, inputs + position * kWinogradGradientChunk * shape.channels,
                              gradients + position * kWinogradGradientChunk * shape.outputs, part % channel_blocks,
                              sums + position * shape.channels * shape.outputs, first == 0);
    }
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < output_blocks; ++block)
    winograd_write_gradient(shape, sums, block, call.data[2]);
}

}  // namespace troupe::cpu
