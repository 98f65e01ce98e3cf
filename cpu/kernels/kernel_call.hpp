/// A call of one of Troupe's own kernels in a compiled step. Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>

#include "nn/graph.hpp"

namespace troupe::cpu {

/// A convolution: [batch, height, width, channels] → [batch, out_height, out_width, outputs].
struct ConvolutionShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t outputs = 0;
  std::int64_t out_height = 0;
  std::int64_t out_width = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 0;
  std::int64_t padding = 0;

  [[nodiscard]] std::int64_t padded_width() const noexcept { return width + 2 * padding; }
  [[nodiscard]] std::int64_t padded_image() const noexcept {  // floats
    return (height + 2 * padding) * padded_width() * channels;
  }
};

/// The values that change from step to step, except images and labels.
struct StepContext {
  std::uint64_t lease = 0;
  bool training = true;
  std::int64_t first = 0;  // nn::Batch::first
};

/// One of Troupe's own kernels with its arguments; each kernel uses some of them (cpu/layers/pointwise.cpp).
struct KernelCall {
  using Run = void (*)(const KernelCall&, const StepContext&);
  Run run = nullptr;
  const char* name = "";         // for the breakdown of a step
  std::array<float*, 7> data{};  // bound after the workspace is planned
  std::int64_t rows = 0;         // samples
  std::int64_t columns = 0;      // values per sample
  nn::Activation activation = nn::Activation::relu;
  double rate = 0;                 // of dropout; momentum of running statistics
  std::uint64_t seed = 0;          // of dropout
  int node = 0;                    // of dropout
  ConvolutionShape convolution{};  // of row_gradient, pooled_…_gradient, winograd_…
  bool fused_relu = false;         // of winograd_convolution
};

}  // namespace troupe::cpu
