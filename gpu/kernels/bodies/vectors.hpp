/// The element-wise kernels of core::Kernels on a device: the operations of core/kernels_reference.cpp in its order, and so its bits (nvcc
/// -fmad=false; see portable.hpp). Bodies for Flat. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/flat.hpp"

namespace troupe::gpu {

/// y ← op(y): reads and writes y.
template <class Op>
struct UpdateBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* y;
  Op op;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto lanes = load<kCount>(y + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) lanes[l] = op(lanes[l]);
    store(y + i, lanes);
  }
};
/// y ← op(a, b); y may be either.
template <class Op>
struct CombineBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* y;
  const float* a;
  const float* b;
  Op op;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto lanes = load<kCount>(a + i);
    const auto others = load<kCount>(b + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) lanes[l] = op(lanes[l], others[l]);
    store(y + i, lanes);
  }
};

struct ScaleOp {
  float a;
  TROUPE_HOST_DEVICE float operator()(float y) const { return a * y; }
};
struct ScaleByOp {
  const float* a;
  TROUPE_HOST_DEVICE float operator()(float y) const { return *a * y; }
};
struct ClampOp {
  float limit;
  TROUPE_HOST_DEVICE float operator()(float y) const { return y > limit ? limit : y < -limit ? -limit : y; }
};
struct AxpyOp {
  float a;
  TROUPE_HOST_DEVICE float operator()(float y, float x) const { return y + a * x; }
};
struct ScaleAddOp {
  float a;
  float b;
  TROUPE_HOST_DEVICE float operator()(float y, float x) const { return a * y + b * x; }
};
struct DifferenceOp {
  TROUPE_HOST_DEVICE float operator()(float a, float b) const { return a - b; }
};

struct FillBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* y;
  float value;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    Lanes<kCount> lanes;
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) lanes[l] = value;
    store(y + i, lanes);
  }
};

/// kDelta: elastic_delta, else elastic_pair.
template <bool kDelta>
struct ElasticBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* x;
  float* center;
  float alpha_worker;
  float alpha_center;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto mine = load<kCount>(x + i);
    auto middle = load<kCount>(center + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) {
      const float d = mine[l] - middle[l];
      mine[l] = kDelta ? alpha_worker * d : mine[l] - alpha_worker * d;
      middle[l] = middle[l] + alpha_center * d;
    }
    store(x + i, mine);
    store(center + i, middle);
  }
};

inline constexpr int kMostVectors = 16;

struct ReduceAllBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* all[kMostVectors];
  int vectors;
  float scale;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto sum = load<kCount>(all[0] + i);
    TROUPE_UNROLL
    for (int v = 1; v < kMostVectors; ++v) {
      if (v >= vectors) break;
      const auto lanes = load<kCount>(all[v] + i);
      TROUPE_UNROLL
      for (int l = 0; l < kCount; ++l) sum[l] = sum[l] + lanes[l];
    }
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) sum[l] = scale * sum[l];
    TROUPE_UNROLL
    for (int v = 0; v < kMostVectors; ++v) {
      if (v >= vectors) break;
      store(all[v] + i, sum);
    }
  }
};

/// y ← y + x, x of 16 bits.
template <class Half>
struct AddWideBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* y;
  const Half* x;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    auto lanes = load<kCount>(y + i);
    const auto others = load<kCount>(x + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) lanes[l] = lanes[l] + others[l];
    store(y + i, lanes);
  }
};

}  // namespace troupe::gpu
