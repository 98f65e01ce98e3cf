#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/kernels.hpp"
#include "core/kernels_check.hpp"

namespace troupe::core {
namespace {

/// Returns the change that an optimizer adds to element i of x; updates its state. Rounds after every operation, in this order.
float step_change(std::size_t i, ConstSpan x, ConstSpan g, const OptimizerState& state, OptimizerKind kind,
                  const StepNumbers& step) {
  using enum OptimizerKind;
  const float decayed = g[i] + step.weight_decay * x[i];
  const float square = decayed * decayed;
  switch (kind) {
    case sgd: break;
    case momentum:
    case nesterov: {
      float& v = state.first[i];
      v = step.momentum * v - step.lr * decayed;
      return kind == momentum ? v : step.momentum * v - step.lr * decayed;
    }
    case rmsprop:
    case rmsprop_inside:
    case adagrad: {
      float& r = state.first[i];
      r = kind == adagrad ? r + square : step.decay * r + (1 - step.decay) * square;
      if (kind == rmsprop_inside) return -(step.lr * (decayed / std::sqrt(r + step.epsilon)));
      return -(step.lr * (decayed / (std::sqrt(r) + step.epsilon)));
    }
    case adam:
    case adamw: {
      const float gradient = kind == adam ? decayed : g[i];
      float& m = state.first[i];
      float& r = state.second[i];
      m = step.momentum * m + (1 - step.momentum) * gradient;
      r = step.decay * r + (1 - step.decay) * (gradient * gradient);
      const float direction = step.first_scale * m / (std::sqrt(step.second_scale * r) + step.epsilon);
      return -(step.lr * (kind == adam ? direction : direction + step.weight_decay * x[i]));
    }
    case adadelta: {
      float& r = state.first[i];
      float& u = state.second[i];
      r = step.decay * r + (1 - step.decay) * square;
      const float change = std::sqrt(u + step.epsilon) / std::sqrt(r + step.epsilon) * decayed;
      u = step.decay * u + (1 - step.decay) * (change * change);
      return -(step.lr * change);
    }
  }
  return -(step.lr * decayed);
}

class ReferenceKernels final : public Kernels {
 public:
  [[nodiscard]] MemorySpace space() const noexcept override { return MemorySpace::host; }

  void fill(Span y, float value) const override {
    for (float& element : y) element = value;
  }
  void copy(Span y, ConstSpan x) const override {
    check_equal_sizes(y, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i];
  }
  void scale(Span y, float a) const override {
    for (float& element : y) element = a * element;
  }
  void axpy(Span y, float a, ConstSpan x) const override {
    check_equal_sizes(y, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] + a * x[i];
  }
  void scale_add(Span y, float a, float b, ConstSpan x) const override {
    check_equal_sizes(y, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a * y[i] + b * x[i];
  }
  void difference(Span y, ConstSpan a, ConstSpan b) const override {
    check_equal_sizes(y, a, b);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] - b[i];
  }
  void elastic_pair(Span x, Span center, float alpha_worker, float alpha_center) const override {
    check_equal_sizes(x, center);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float d = x[i] - center[i];
      x[i] = x[i] - alpha_worker * d;
      center[i] = center[i] + alpha_center * d;
    }
  }
  void elastic_delta(Span x, Span center, float alpha_worker, float alpha_center) const override {
    check_equal_sizes(x, center);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float d = x[i] - center[i];
      x[i] = alpha_worker * d;
      center[i] = center[i] + alpha_center * d;
    }
  }
  void reduce_all(std::span<const Span> all, float scale) const override {
    check_equal_sizes(all);
    for (std::size_t i = 0; i < all[0].size(); ++i) {
      float sum = all[0][i];
      for (std::size_t v = 1; v < all.size(); ++v) sum = sum + all[v][i];
      for (const Span& vector : all) vector[i] = scale * sum;
    }
  }
  void broadcast_all(std::span<const Span> all, std::size_t root) const override {
    check_equal_sizes(all);
    check_root(all, root);
    for (std::size_t v = 0; v < all.size(); ++v)
      if (v != root) copy(all[v], all[root]);
  }
  void clamp(Span y, float limit) const override {
    for (float& element : y) element = element > limit ? limit : element < -limit ? -limit : element;
  }
  void narrow(HalfSpan y, ConstSpan x, HalfKind kind) const override {
    check_equal_sizes(x, y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = to_half(x[i], kind);
  }
  void widen(Span y, ConstHalfSpan x, HalfKind kind) const override {
    check_equal_sizes(y, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = from_half(x[i], kind);
  }
  void add_wide(Span y, ConstHalfSpan x, HalfKind kind) const override {
    check_equal_sizes(y, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] + from_half(x[i], kind);
  }
  void optimize(Span x, ConstSpan g, OptimizerState state, const OptimizerStep& step) const override {
    check_optimizer(x, g, state, step);
    const auto numbers = step_numbers(step);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] + step_change(i, x, g, state, step.kind, numbers);
  }
  void optimize_delta(ConstSpan x, Span g, OptimizerState state, const OptimizerStep& step) const override {
    check_optimizer(x, g, state, step);
    const auto numbers = step_numbers(step);
    for (std::size_t i = 0; i < x.size(); ++i) g[i] = step_change(i, x, g, state, step.kind, numbers);
  }
  [[nodiscard]] double squared_norm(ConstSpan x) const override {
    double total = 0;
    for (std::size_t begin = 0; begin < x.size(); begin += kNormChunk) {
      std::array<double, kNormLanes> lanes{};
      const std::size_t end = std::min(x.size(), begin + kNormChunk);
      for (std::size_t i = begin; i < end; ++i) lanes[(i - begin) % kNormLanes] += double{x[i]} * double{x[i]};
      for (std::size_t half = kNormLanes / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      total += lanes[0];
    }
    return total;
  }
  [[nodiscard]] bool all_finite(ConstSpan x) const override {
    return std::all_of(x.begin(), x.end(), [](float element) { return std::isfinite(element); });
  }
  [[nodiscard]] bool all_within(ConstSpan x, float limit) const override {
    return std::all_of(x.begin(), x.end(), [limit](float element) { return std::abs(element) <= limit; });
  }
};

}  // namespace

const Kernels& reference_kernels() noexcept {
  static const ReferenceKernels kernels;
  return kernels;
}

}  // namespace troupe::core
