/// Element bodies of local response normalisation (the formula stands at nn::LrnLayer): an index is a group of channels of a pixel, and
/// reads up to size − 1 channels on each side of it. kHalf: (size − 1) / 2 where it is known when this is compiled, so that all stays in
/// registers; 0: `half` is any. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/functions.hpp"
#include "gpu/kernels/bodies/groups.hpp"

namespace troupe::gpu {

struct LrnNumbers {
  float k;
  float share;  // alpha / size
  float beta;
  std::int64_t half;
  std::int64_t channels;
};

/// Channels c − kSide … c + kLanes + kSide − 1 of a pixel, zeros outside. `row`: the pixel's first channel.
template <int kLanes, int kSide, class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline Lanes<kLanes + 2 * kSide> neighbourhood(const T* row, std::int64_t c,
                                                                                std::int64_t channels) {
  Lanes<kLanes + 2 * kSide> all;
  const auto middle = load<kLanes>(row + c);
  TROUPE_UNROLL
  for (int l = 0; l < kLanes; ++l) all[kSide + l] = middle[l];
  TROUPE_UNROLL
  for (int s = 0; s < kSide; ++s) {
    const std::int64_t before = c - kSide + s;
    const std::int64_t behind = c + kLanes + s;
    all[s] = before >= 0 ? to_float(row[before]) : 0.0f;
    all[kSide + kLanes + s] = behind < channels ? to_float(row[behind]) : 0.0f;
  }
  return all;
}

/// k + share · Σ x_j², windows of any size, from memory.
template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline float lrn_base(const T* row, std::int64_t c, const LrnNumbers& numbers) {
  const std::int64_t last = smaller(numbers.channels - 1, c + numbers.half);
  float sum = 0;
  for (std::int64_t j = larger<std::int64_t>(0, c - numbers.half); j <= last; ++j) {
    const float value = to_float(row[j]);
    sum = sum + value * value;
  }
  return numbers.k + numbers.share * sum;
}

/// The same from registers: the window in `values` begins at `first`.
template <int kHalf, int kCount>
[[nodiscard]] TROUPE_HOST_DEVICE inline float lrn_base(const Lanes<kCount>& values, int first,
                                                       const LrnNumbers& numbers) {
  float sum = 0;
  TROUPE_UNROLL
  for (int j = 0; j < 2 * kHalf + 1; ++j) sum = sum + values[first + j] * values[first + j];
  return numbers.k + numbers.share * sum;
}

template <class T, int kLanes, int kHalf>
struct LrnForwardBody {
  const T* x;
  T* y;
  LrnNumbers numbers;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const T* const row = x + pixel * numbers.channels;
    const auto values = neighbourhood<kLanes, kHalf>(row, channel, numbers.channels);
    Lanes<kLanes> result;
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      const float base = kHalf > 0 ? lrn_base<kHalf>(values, l, numbers) : lrn_base(row, channel + l, numbers);
      result[l] = values[kHalf + l] * negative_power(base, numbers.beta);
    }
    store(y + pixel * numbers.channels + channel, result);
  }
};

/// dx_j = dy_j b_j^−beta − 2 · beta · share · x_j · Σ_c dy_c x_c b_c^(−beta − 1), over the c whose windows hold j.
template <class T, int kLanes, int kHalf>
struct LrnBackwardBody {
  const T* x;
  const T* dy;
  T* dx;
  LrnNumbers numbers;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const std::int64_t at = pixel * numbers.channels;
    const auto result = kHalf > 0 ? in_registers(x + at, dy + at, channel) : from_memory(x + at, dy + at, channel);
    store(dx + at + channel, result);
  }

 private:
  [[nodiscard]] TROUPE_HOST_DEVICE float slope() const { return 2.0f * numbers.beta * numbers.share; }

  [[nodiscard]] TROUPE_HOST_DEVICE Lanes<kLanes> in_registers(const T* x_row, const T* dy_row,
                                                              std::int64_t channel) const {
    const auto values = neighbourhood<kLanes, 2 * kHalf>(x_row, channel, numbers.channels);
    const auto gradients = neighbourhood<kLanes, kHalf>(dy_row, channel, numbers.channels);
    Lanes<kLanes + 2 * kHalf> parts;  // dy_c x_c b_c^(−beta − 1); 0 outside
    Lanes<kLanes> result;
    TROUPE_UNROLL
    for (int l = 0; l < kLanes + 2 * kHalf; ++l) {
      const float base = lrn_base<kHalf>(values, l, numbers);
      const float power = negative_power(base, numbers.beta);
      const std::int64_t center = channel + l - kHalf;
      const bool exists = center >= 0 && center < numbers.channels;
      parts[l] = exists ? gradients[l] * values[kHalf + l] * (power / base) : 0.0f;
      if (l >= kHalf && l < kHalf + kLanes) result[l - kHalf] = gradients[l] * power;
    }
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      float sum = 0;
      TROUPE_UNROLL
      for (int j = 0; j < 2 * kHalf + 1; ++j) sum = sum + parts[l + j];
      result[l] = result[l] - slope() * values[2 * kHalf + l] * sum;
    }
    return result;
  }
  [[nodiscard]] TROUPE_HOST_DEVICE Lanes<kLanes> from_memory(const T* x_row, const T* dy_row,
                                                             std::int64_t channel) const {
    Lanes<kLanes> result;
    for (int l = 0; l < kLanes; ++l) {
      const std::int64_t j = channel + l;
      const std::int64_t last = smaller(numbers.channels - 1, j + numbers.half);
      float sum = 0;
      for (std::int64_t c = larger<std::int64_t>(0, j - numbers.half); c <= last; ++c) {
        const float base = lrn_base(x_row, c, numbers);
        sum = sum + to_float(dy_row[c]) * to_float(x_row[c]) * (negative_power(base, numbers.beta) / base);
      }
      const float mine = to_float(dy_row[j]) * negative_power(lrn_base(x_row, j, numbers), numbers.beta);
      result[l] = mine - slope() * to_float(x_row[j]) * sum;
    }
    return result;
  }
};

}  // namespace troupe::gpu
