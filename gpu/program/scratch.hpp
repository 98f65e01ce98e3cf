/// Memory in which engines are tried and timed, zero-filled, and freed at the end. Compile time only. Thread rule: one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// Device memory of one role, freed at the end.
class Scratch {
 public:
  Scratch(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {
    if (bytes == 0) return;
    if (auto allocated = device.memory().allocate(bytes)) memory_ = *allocated;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (memory_ != nullptr) device_.memory().deallocate(memory_, bytes_);
  }
  [[nodiscard]] bool is_there() const noexcept { return bytes_ == 0 || memory_ != nullptr; }
  [[nodiscard]] void* get() const noexcept { return memory_; }
  [[nodiscard]] float* floats() const noexcept { return static_cast<float*>(memory_); }

 private:
  Device& device_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

[[nodiscard]] inline std::size_t sized(std::int64_t count, Type type) {
  return static_cast<std::size_t>(count) * bytes_of(type);
}

template <class Plan>
[[nodiscard]] std::size_t largest_workspace(const std::vector<std::unique_ptr<Plan>>& plans) {
  std::size_t bytes = 0;
  for (const auto& plan : plans) bytes = std::max(bytes, plan->workspace());
  return bytes;
}

/// The memory of a convolution's operands, and a workspace for the largest of the plans.
struct ConvolutionScratch {
  ConvolutionScratch(Device& device, const Convolution& description,
                     const std::vector<std::unique_ptr<ConvolutionPlan>>& plans)
      : x(device, sized(description.shape.input.size(), description.type)),
        w(device, sized(description.shape.weights(), Type::fp32)),  // as gradients may be
        y(device, sized(description.shape.output.size(), description.type)),
        bias(device, description.bias ? sized(description.shape.output.channels, description.type) : 0),
        addend(device, description.addend ? sized(description.shape.output.size(), description.type) : 0),
        sum(device, description.statistics ? sized(description.shape.output.channels, Type::fp32) : 0),
        squares(device, description.statistics ? sized(description.shape.output.channels, Type::fp32) : 0),
        workspace(device, largest_workspace(plans)) {}
  [[nodiscard]] bool is_there() const {
    return std::ranges::all_of(std::array{&x, &w, &y, &bias, &addend, &sum, &squares, &workspace}, &Scratch::is_there);
  }
  [[nodiscard]] ConvolutionOperands operands() const {
    return {x.get(), w.get(), y.get(), bias.get(), addend.get(), sum.floats(), squares.floats()};
  }

  Scratch x, w, y, bias, addend, sum, squares, workspace;
};

/// What the statistics of a convolution's output are written to.
struct StatisticsScratch {
  StatisticsScratch(Device& device, const Convolution& description)
      : output(description.shape.output),
        type(description.type),
        mean(device, sized(output.channels, Type::fp32)),
        deviation(device, sized(output.channels, Type::fp32)),
        variance(device, sized(output.channels, Type::fp32)),
        chunks(device, batch_norm_scratch(output.pixels(), output.channels) * sizeof(float)) {}
  [[nodiscard]] bool is_there() const {
    return std::ranges::all_of(std::array{&mean, &deviation, &variance, &chunks}, &Scratch::is_there);
  }
  /// Of y, which is read; with `summed` from the sums.
  [[nodiscard]] Kernel kernel(const ConvolutionScratch& of, bool summed) const {
    return BatchStatistics{.x = of.y.get(),
                           .mean = mean.floats(),
                           .inverse_deviation = deviation.floats(),
                           .scratch = chunks.floats(),
                           .pixels = output.pixels(),
                           .channels = output.channels,
                           .type = type,
                           .variance = variance.floats(),
                           .sum = summed ? of.sum.floats() : nullptr,
                           .squares = summed ? of.squares.floats() : nullptr};
  }

  TensorShape output;
  Type type;
  Scratch mean, deviation, variance, chunks;
};

}  // namespace troupe::gpu
