#include "cpu/kernels/row_gradient.hpp"

#include <omp.h>

#include <cstring>

#include "core/buffer.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kVectorLanes = 16;

std::int64_t rounded(std::int64_t floats) { return (floats + kVectorLanes - 1) / kVectorLanes * kVectorLanes; }

/// Computed lanes divided by used lanes.
double waste(std::int64_t floats) { return static_cast<double>(rounded(floats)) / static_cast<double>(floats); }

}  // namespace

bool row_gradient_available() noexcept { return __builtin_cpu_supports("avx512f") != 0; }

bool row_gradient_pays(const ConvolutionShape& shape) noexcept {
  constexpr double kClearly = 1.25;  // if both fill their lanes equally, oneDNN is as fast
  return waste(shape.channels) >= kClearly * waste(shape.kernel * shape.channels);
}

dnnl::memory::desc row_gradient_weights(const ConvolutionShape& shape) {
  const std::int64_t row = rounded(shape.kernel * shape.channels);
  return {{shape.outputs, shape.channels, shape.kernel, shape.kernel},
          dnnl::memory::data_type::f32,
          dnnl::memory::dims{row, 1, shape.outputs * row, shape.channels}};
}

std::size_t row_gradient_scratch(const ConvolutionShape& shape, int threads) noexcept {
  if (shape.padding == 0) return 0;
  return core::align_floats(static_cast<std::size_t>(shape.padded_image())) * static_cast<std::size_t>(threads);
}

void row_gradient(const KernelCall& call, const StepContext& /*context*/) {
  const ConvolutionShape& shape = call.convolution;
  const float* dy = call.data[0];
  const float* weights = call.data[1];
  float* dx = call.data[2];
  float* scratch = call.data[3];
  const std::int64_t image = shape.height * shape.width * shape.channels;
  const std::int64_t row = shape.width * shape.channels;
  const auto padded = static_cast<std::size_t>(shape.padded_image());
#pragma omp parallel for schedule(static)
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    float* to = dx + n * image;
    // With padding, the image in scratch has a border for sums outside of the image.
    float* x =
        shape.padding == 0 ? to : scratch + core::align_floats(padded) * static_cast<std::size_t>(omp_get_thread_num());
    std::memset(x, 0, padded * sizeof(float));
    row_gradient_image(shape, dy + n * shape.out_height * shape.out_width * shape.outputs, weights, x);
    if (shape.padding == 0) continue;
    for (std::int64_t y = 0; y < shape.height; ++y)
      std::memcpy(to + y * row, x + ((y + shape.padding) * shape.padded_width() + shape.padding) * shape.channels,
                  static_cast<std::size_t>(row) * sizeof(float));
  }
}

}  // namespace troupe::cpu
