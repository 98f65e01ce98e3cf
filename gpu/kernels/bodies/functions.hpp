/// Functions of one float. Those without a note give the same bits on host and device. Thread rule: pure functions.
#pragma once

#include <cmath>

#include "gpu/kernels/bodies/numbers.hpp"
#include "nn/graph.hpp"

namespace troupe::gpu {

/// exp(x) for x ≤ 0 (0 below −87.3), with the arithmetic and the bits of cpu/kernels/elementwise_loops.hpp.
[[nodiscard]] TROUPE_HOST_DEVICE inline float exp_negative(float x) {
  constexpr float kLowest = -87.33654f;
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer in the low bits
  constexpr float kLog2e = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  const bool underflow = x < kLowest;
  x = underflow ? kLowest : x;  // keeps NaN
  const float shifted = x * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float scale = as_float((bits_of(shifted) - bits_of(kRound) + 127) << 23);
  return underflow ? 0.0f : p * scale;
}

[[nodiscard]] TROUPE_HOST_DEVICE inline float absolute(float x) { return as_float(bits_of(x) & 0x7fffffff); }
[[nodiscard]] TROUPE_HOST_DEVICE inline float with_sign_of(float size, float sign) {
  return as_float((bits_of(size) & 0x7fffffff) | (bits_of(sign) & 0x80000000));
}

/// 0 for x ≤ 0; NaN stays, so that a run that diverged is seen.
[[nodiscard]] TROUPE_HOST_DEVICE inline float relu(float x) { return x <= 0 ? 0.0f : x; }
[[nodiscard]] TROUPE_HOST_DEVICE inline float sigmoid(float x) {
  const float e = exp_negative(-absolute(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}
/// Near 0 a polynomial (Cephes' tanhf), where 1 − exp(−2x) would cancel.
[[nodiscard]] TROUPE_HOST_DEVICE inline float hyperbolic_tangent(float x) {
  const float size = absolute(x);
  const float e = exp_negative(-2.0f * size);
  const float far = with_sign_of((1.0f - e) / (1.0f + e), x);
  const float square = x * x;
  float p = -5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const float near = p * square * x + x;
  return size < 0.625f ? near : far;
}

template <nn::Activation kActivation>
[[nodiscard]] TROUPE_HOST_DEVICE inline float activate(float x) {
  if constexpr (kActivation == nn::Activation::relu) return relu(x);
  if constexpr (kActivation == nn::Activation::sigmoid) return sigmoid(x);
  if constexpr (kActivation == nn::Activation::tanh) return hyperbolic_tangent(x);
}
/// f'(x) from y = f(x)
template <nn::Activation kActivation>
[[nodiscard]] TROUPE_HOST_DEVICE inline float slope(float y) {
  if constexpr (kActivation == nn::Activation::relu) return y > 0 ? 1.0f : 0.0f;
  if constexpr (kActivation == nn::Activation::sigmoid) return y * (1.0f - y);
  if constexpr (kActivation == nn::Activation::tanh) return 1.0f - y * y;
}

/// base^−exponent for base > 0. The usual exponents are roots; others are the library's powf, whose last bits differ between host and
/// device.
[[nodiscard]] TROUPE_HOST_DEVICE inline float negative_power(float base, float exponent) {
  if (exponent == 0.75f) {
    const float root = ::sqrtf(base);
    return 1.0f / (root * ::sqrtf(root));
  }
  if (exponent == 0.5f) return 1.0f / ::sqrtf(base);
  if (exponent == 1.0f) return 1.0f / base;
  return ::powf(base, -exponent);
}

}  // namespace troupe::gpu
