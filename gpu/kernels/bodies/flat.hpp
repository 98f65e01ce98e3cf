/// Element bodies over flat tensors: each element on its own. Flat<Body> makes an index move Body::kLanes neighbours, with widest accesses
/// where all pointers are aligned (`wide`), and one by one at the end; each vector is read and written once. A Body has
/// run<kCount>(first): elements first … first + kCount − 1. Outputs may be inputs where gpu/kernels/kernel.hpp says so: a thread reads all of
/// its elements before it writes them. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/functions.hpp"
#include "gpu/kernels/bodies/numbers.hpp"

namespace troupe::gpu {

template <class Body>
struct Flat {
  Body body;
  std::int64_t count;
  bool wide;

  [[nodiscard]] std::int64_t indices() const { return ceil_div(count, Body::kLanes); }
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = index * Body::kLanes;
    if (wide && first + Body::kLanes <= count) {
      body.template run<Body::kLanes>(first);
      return;
    }
    const std::int64_t end = smaller(first + Body::kLanes, count);
    for (std::int64_t i = first; i < end; ++i) body.template run<1>(i);
  }
};

template <class From, class To>
struct CastBody {
  static constexpr int kLanes = smaller(kLanesOf<From>, kLanesOf<To>);
  const From* from;
  To* to;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    store(to + i, load<kCount>(from + i));
  }
};

template <class T, nn::Activation kActivation>
struct ActivationForwardBody {
  static constexpr int kLanes = kLanesOf<T>;
  const T* x;
  T* y;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto lanes = load<kCount>(x + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) lanes[l] = activate<kActivation>(lanes[l]);
    store(y + i, lanes);
  }
};

template <class T, nn::Activation kActivation>
struct ActivationBackwardBody {
  static constexpr int kLanes = kLanesOf<T>;
  const T* y;
  const T* dy;
  T* dx;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    const auto outputs = load<kCount>(y + i);
    auto gradient = load<kCount>(dy + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) gradient[l] = gradient[l] * slope<kActivation>(outputs[l]);
    store(dx + i, gradient);
  }
};

inline constexpr int kMostAddends = 8;

/// From the left, in float.
template <class T>
struct AddUpBody {
  static constexpr int kLanes = kLanesOf<T>;
  const T* x[kMostAddends];
  int inputs;
  bool relu_after;
  T* y;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto sum = load<kCount>(x[0] + i);
    TROUPE_UNROLL
    for (int input = 1; input < kMostAddends; ++input) {
      if (input >= inputs) break;
      const auto lanes = load<kCount>(x[input] + i);
      TROUPE_UNROLL
      for (int l = 0; l < kCount; ++l) sum[l] = sum[l] + lanes[l];
    }
    if (relu_after) {
      TROUPE_UNROLL
      for (int l = 0; l < kCount; ++l) sum[l] = relu(sum[l]);
    }
    store(y + i, sum);
  }
};

}  // namespace troupe::gpu
