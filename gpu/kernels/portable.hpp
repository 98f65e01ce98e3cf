/// What the bodies of kernels need to be compiled for host and device alike. They include no CUDA header and call no function of the
/// standard library that a device lacks. nvcc must get -fmad=false: then each operation rounds once, as in core/kernels_loops.hpp, and host
/// and device give the same bits where a body says so. Only memory limits these kernels, so fused multiply-add would gain nothing.
/// TROUPE_UNROLL is for loops of a known count, TROUPE_OVERLAP for others with a constant step, of which four loads are to be under way at
/// once (with another step: for_rows() of bodies/columns.hpp).
/// Element indices are 64-bit everywhere. Thread rule: pure functions.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__
#define TROUPE_UNROLL _Pragma("unroll")
#define TROUPE_OVERLAP _Pragma("unroll 4")
#else
#define TROUPE_HOST_DEVICE
#define TROUPE_UNROLL _Pragma("GCC unroll 8")
#define TROUPE_OVERLAP _Pragma("GCC unroll 4")
#endif

namespace troupe::gpu {

template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE constexpr T larger(T a, T b) {
  return a < b ? b : a;
}
[[nodiscard]] TROUPE_HOST_DEVICE constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Quotient and remainder by a divisor that is known before the launch: a multiplication and a shift while the dividend is below 2^31
/// (Granlund & Montgomery 1994), 64-bit division beyond. Devices have no instruction for either division.
class Divider {
 public:
  struct Parts {
    std::int64_t quotient;
    std::int64_t remainder;
  };
  Divider() = default;
  /// 0 < divisor < 2^31
  explicit constexpr Divider(std::int64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << shift_;
    multiplier_ = static_cast<std::uint32_t>(((power - divisor_) << 32) / divisor_ + 1);
  }
  [[nodiscard]] TROUPE_HOST_DEVICE constexpr std::int64_t divisor() const { return divisor_; }
  /// dividend ≥ 0
  [[nodiscard]] TROUPE_HOST_DEVICE constexpr Parts operator()(std::int64_t dividend) const {
    if (dividend > kLargest) return {dividend / divisor_, dividend % divisor_};
    const auto n = static_cast<std::uint32_t>(dividend);
    const auto high = static_cast<std::uint32_t>((std::uint64_t{n} * multiplier_) >> 32);
    const std::uint32_t quotient = (high + n) >> shift_;
    return {quotient, n - quotient * divisor_};
  }

 private:
  static constexpr std::int64_t kLargest = 0x7fffffff;
  std::uint32_t divisor_ = 1;
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

}  // namespace troupe::gpu
