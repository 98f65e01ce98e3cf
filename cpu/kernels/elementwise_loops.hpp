/// The loops of Elementwise in plain C++. The compiler vectorises them with the flags of the file that includes this header.
/// Internal to elementwise_*.cpp. Everything has internal linkage and calls no inline functions from elsewhere: the linker must not
/// keep code compiled for AVX-512 for a CPU without it.
#pragma once

#include "cpu/kernels/elementwise.hpp"

namespace troupe::cpu {
namespace {

/// exp(x) for x ≤ 0 (0 below −87.3): 2^n · p(r), r = x − n ln 2 in [−ln 2 / 2, ln 2 / 2], p of degree 6 (Cephes' expf).
[[maybe_unused]] inline float exp_negative(float x) {
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
  const auto bits = __builtin_bit_cast(std::int32_t, shifted) - __builtin_bit_cast(std::int32_t, kRound);
  const float scale = __builtin_bit_cast(float, (bits + 127) << 23);
  return underflow ? 0.0f : p * scale;
}

inline void exp_rows(const float* z, float* e, float* maxima, float* sums, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, z += columns, e += columns) {
    float maximum = z[0];
    for (std::int64_t c = 1; c < columns; ++c) maximum = z[c] > maximum ? z[c] : maximum;
    for (std::int64_t c = 0; c < columns; ++c) e[c] = exp_negative(z[c] - maximum);
    float sum = 0;
    for (std::int64_t c = 0; c < columns; ++c) sum += e[c];
    maxima[row] = maximum;
    sums[row] = sum;
  }
}

template <class Derivative>
inline void activation_backward(const float* __restrict y, float* __restrict dy, float* __restrict bias,
                                std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) bias[c] = 0;
  for (std::int64_t row = 0; row < rows; ++row, y += columns, dy += columns)
    for (std::int64_t c = 0; c < columns; ++c) {
      dy[c] *= Derivative::from_output(y[c]);
      bias[c] += dy[c];
    }
}

inline void column_sums(const float* __restrict x, float* __restrict sums, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) sums[c] = 0;
  for (std::int64_t row = 0; row < rows; ++row, x += columns)
    for (std::int64_t c = 0; c < columns; ++c) sums[c] += x[c];
}

inline void multiply(const float* a, const float* b, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

struct Relu {
  static float from_output(float y) { return y > 0 ? 1.0f : 0.0f; }
};
struct Sigmoid {
  static float from_output(float y) { return y * (1.0f - y); }
};
struct Tanh {
  static float from_output(float y) { return 1.0f - y * y; }
};

constexpr Elementwise table(const char* name, std::size_t length) {
  return {{name, length},
          {activation_backward<Relu>, activation_backward<Sigmoid>, activation_backward<Tanh>},
          column_sums,
          multiply,
          exp_rows};
}

}  // namespace
}  // namespace troupe::cpu
