/// One step of an optimizer over a flat arena, in one pass: the operations of core/kernels_reference.cpp in its order, and so its bits.
/// A body for Flat. Thread rule: plain values.
#pragma once

#include "core/kernels_check.hpp"
#include "gpu/kernels/bodies/flat.hpp"

namespace troupe::gpu {

/// The state vectors of a kind; the test compares them with core::kOptimizers.
[[nodiscard]] TROUPE_HOST_DEVICE constexpr int state_vectors(core::OptimizerKind kind) {
  using enum core::OptimizerKind;
  return kind == sgd ? 0 : kind == adam || kind == adamw || kind == adadelta ? 2 : 1;
}

/// The change that an optimizer adds to x, from gradient g; updates its state.
template <core::OptimizerKind kKind>
[[nodiscard]] TROUPE_HOST_DEVICE inline float change_of(float x, float g, float& first, float& second,
                                                        const core::StepNumbers& step) {
  using enum core::OptimizerKind;
  const float decayed = g + step.weight_decay * x;
  if constexpr (kKind == sgd) {
    return -(step.lr * decayed);
  } else if constexpr (kKind == momentum || kKind == nesterov) {
    first = step.momentum * first - step.lr * decayed;
    return kKind == momentum ? first : step.momentum * first - step.lr * decayed;
  } else if constexpr (kKind == adam || kKind == adamw) {
    const float gradient = kKind == adam ? decayed : g;
    first = step.momentum * first + (1 - step.momentum) * gradient;
    second = step.decay * second + (1 - step.decay) * (gradient * gradient);
    const float direction = step.first_scale * first / (::sqrtf(step.second_scale * second) + step.epsilon);
    return -(step.lr * (kKind == adam ? direction : direction + step.weight_decay * x));
  } else if constexpr (kKind == adadelta) {
    first = step.decay * first + (1 - step.decay) * (decayed * decayed);
    const float change = ::sqrtf(second + step.epsilon) / ::sqrtf(first + step.epsilon) * decayed;
    second = step.decay * second + (1 - step.decay) * (change * change);
    return -(step.lr * change);
  } else {
    static_assert(kKind == rmsprop || kKind == rmsprop_inside || kKind == adagrad,
                  "an optimizer without its arithmetic");
    const float square = decayed * decayed;
    first = kKind == adagrad ? first + square : step.decay * first + (1 - step.decay) * square;
    if constexpr (kKind == rmsprop_inside) return -(step.lr * (decayed / ::sqrtf(first + step.epsilon)));
    return -(step.lr * (decayed / (::sqrtf(first) + step.epsilon)));
  }
}

/// kDelta: g ← the change and x stays; else x ← x + change.
template <core::OptimizerKind kKind, bool kDelta>
struct OptimizeBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* x;
  float* g;
  float* first;
  float* second;
  core::StepNumbers numbers;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    constexpr int kVectors = state_vectors(kKind);
    const auto old = load<kCount>(x + i);
    const auto gradient = load<kCount>(g + i);
    Lanes<kCount> a{};
    Lanes<kCount> b{};
    if constexpr (kVectors > 0) a = load<kCount>(first + i);
    if constexpr (kVectors > 1) b = load<kCount>(second + i);
    Lanes<kCount> result;
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) {
      const float change = change_of<kKind>(old[l], gradient[l], a[l], b[l], numbers);
      result[l] = kDelta ? change : old[l] + change;
    }
    store((kDelta ? g : x) + i, result);
    if constexpr (kVectors > 0) store(first + i, a);
    if constexpr (kVectors > 1) store(second + i, b);
  }
};

}  // namespace troupe::gpu
