/// What the tests of kernels share: tensors of any type beside their values in double, and execution in both thread orders.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu::testing {

inline constexpr Type kTypes[] = {Type::fp32, Type::bf16, Type::fp16};

/// What one rounding to the type may change, relative.
[[nodiscard]] double rounding(Type type);

/// Device memory of a test: elements of a type at a chosen distance from an aligned address. A pattern behind the end shows writes beyond.
class Tensor {
 public:
  /// `shift`: elements before the first one, 0 for an aligned tensor.
  Tensor(Type type, std::int64_t count, std::int64_t shift = 0);
  /// Values are rounded to the type.
  Tensor(Type type, const std::vector<double>& values, std::int64_t shift = 0);

  [[nodiscard]] void* data() { return bytes_.data() + begin_; }
  [[nodiscard]] Type type() const noexcept { return type_; }
  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  [[nodiscard]] double operator[](std::int64_t index) const;
  void set(std::int64_t index, double value);
  [[nodiscard]] std::vector<double> values() const;
  [[nodiscard]] std::vector<std::uint8_t> bits() const;
  /// Nothing was written before the first element or behind the last.
  [[nodiscard]] bool is_intact() const;

 private:
  Type type_;
  std::int64_t count_;
  std::size_t begin_;  // bytes
  std::vector<std::uint8_t> bytes_;
};

/// Values that the type holds exactly, between -2 and 2, from a stream of core::Random.
[[nodiscard]] std::vector<double> random_values(Type type, std::int64_t count, std::uint64_t stream);

/// Executes the kernel with threads in ascending order.
void run(const Kernel& kernel);

/// Every element within `tolerance` · max(1, |expected|).
void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance);

/// Position in an NHWC tensor of what is at (sample, channel, row, column).
[[nodiscard]] inline std::int64_t nhwc(const TensorShape& s, std::int64_t n, std::int64_t c, std::int64_t h,
                                       std::int64_t w) {
  return ((n * s.height + h) * s.width + w) * s.channels + c;
}

/// NHWC from [batch, channels, height, width], and back.
[[nodiscard]] std::vector<double> to_nhwc(const TensorShape& shape, const std::vector<double>& planes);
[[nodiscard]] std::vector<double> to_planes(const TensorShape& shape, const std::vector<double>& nhwc);

}  // namespace troupe::gpu::testing
