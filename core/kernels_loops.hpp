/// The fast host kernels, written once over a vector type V and compiled once per instruction set (kernels_avx2.cpp,
/// kernels_avx512.cpp). Internal to core.
///
/// Same bits everywhere: every formula is written once and runs on V in the main loop and on one float in the tail. Each operation
/// rounds once: there is no contraction to fma, as memory bandwidth is the limit anyway. So the fast kernels equal the reference
/// bit for bit (tolerance 0, except NaN payloads), for every instruction set and wherever a vector was cut.
///
/// V must have internal linkage in its file. Then all that is instantiated here has internal linkage too, and the linker cannot
/// pick code with wide instructions for a CPU that lacks them. For the same reason this header calls no inline functions but
/// intrinsics.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/kernels_check.hpp"

namespace troupe::core {

/// The kernels of one instruction set. Pointers are aligned to kAlignment (only speed depends on it); n counts floats.
struct HostLoops {
  using Optimize = void (*)(float* x, const float* g, float* first, float* second, std::size_t n, StepNumbers step);
  using OptimizeDelta = void (*)(const float* x, float* g, float* first, float* second, std::size_t n,
                                 StepNumbers step);

  void (*fill)(float* y, float value, std::size_t n);
  void (*scale)(float* y, float a, std::size_t n);
  void (*axpy)(float* y, float a, const float* x, std::size_t n);
  void (*scale_add)(float* y, float a, float b, const float* x, std::size_t n);
  void (*difference)(float* y, const float* a, const float* b, std::size_t n);
  void (*elastic_pair)(float* x, float* center, float alpha_worker, float alpha_center, std::size_t n);
  void (*elastic_delta)(float* x, float* center, float alpha_worker, float alpha_center, std::size_t n);
  void (*reduce_all)(const Span* all, std::size_t vectors, float scale, std::size_t n);
  void (*broadcast_all)(const Span* all, std::size_t vectors, std::size_t root, std::size_t n);
  void (*clamp)(float* y, float limit, std::size_t n);
  void (*narrow[2])(std::uint16_t* y, const float* x, std::size_t n);  // by HalfKind
  void (*widen[2])(float* y, const std::uint16_t* x, std::size_t n);
  void (*add_wide[2])(float* y, const std::uint16_t* x, std::size_t n);
  Optimize optimize[kOptimizerKinds];
  OptimizeDelta optimize_delta[kOptimizerKinds];
  double (*squared_norm)(const float* x, std::size_t n);
  bool (*all_finite)(const float* x, std::size_t n);
  bool (*all_within)(const float* x, float limit, std::size_t n);
};

extern const HostLoops kAvx2Loops;
extern const HostLoops kAvx512Loops;

/// From this size on, vectors that are written but not read bypass the caches: they would not stay in them, and a normal store
/// reads the cache line first.
inline constexpr std::size_t kStreamingFloats = std::size_t{8} << 20;

template <class V>
struct Loops {
  static constexpr std::size_t kWidth = V::kWidth;

  /// One float with V's operations.
  struct One {
    float value;
    static One load(const float* from) { return {*from}; }
    static One all(float value) { return {value}; }
    void store(float* to) const { *to = value; }
    void stream(float* to) const { *to = value; }
    friend One operator+(One a, One b) { return {a.value + b.value}; }
    friend One operator-(One a, One b) { return {a.value - b.value}; }
    friend One operator*(One a, One b) { return {a.value * b.value}; }
    friend One operator/(One a, One b) { return {a.value / b.value}; }
    friend One min(One a, One b) { return {a.value < b.value ? a.value : b.value}; }
    friend One max(One a, One b) { return {a.value > b.value ? a.value : b.value}; }
    friend One sqrt(One a) { return {_mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a.value)))}; }
  };

  template <class Body>
  static void each(std::size_t n, Body body) {
    std::size_t i = 0;
#pragma GCC unroll 4
    for (; i + kWidth <= n; i += kWidth) body.template operator()<V>(i);
    for (; i < n; ++i) body.template operator()<One>(i);
  }

  static bool streams(const float* y, std::size_t n) {
    return n >= kStreamingFloats && reinterpret_cast<std::size_t>(y) % kAlignment == 0;
  }

  static void fill(float* y, float value, std::size_t n) {
    if (streams(y, n)) {
      each(n, [=]<class T>(std::size_t i) { T::all(value).stream(y + i); });
      V::fence();
    } else {
      each(n, [=]<class T>(std::size_t i) { T::all(value).store(y + i); });
    }
  }

  static void scale(float* y, float a, std::size_t n) {
    each(n, [=]<class T>(std::size_t i) { (T::all(a) * T::load(y + i)).store(y + i); });
  }

  static void axpy(float* y, float a, const float* x, std::size_t n) {
    each(n, [=]<class T>(std::size_t i) { (T::load(y + i) + T::all(a) * T::load(x + i)).store(y + i); });
  }

  static void scale_add(float* y, float a, float b, const float* x, std::size_t n) {
    each(n, [=]<class T>(std::size_t i) { (T::all(a) * T::load(y + i) + T::all(b) * T::load(x + i)).store(y + i); });
  }

  static void difference(float* y, const float* a, const float* b, std::size_t n) {
    if (y != a && y != b && streams(y, n)) {
      each(n, [=]<class T>(std::size_t i) { (T::load(a + i) - T::load(b + i)).stream(y + i); });
      V::fence();
    } else {
      each(n, [=]<class T>(std::size_t i) { (T::load(a + i) - T::load(b + i)).store(y + i); });
    }
  }

  static void elastic_pair(float* x, float* center, float alpha_worker, float alpha_center, std::size_t n) {
    each(n, [=]<class T>(std::size_t i) {
      const T worker = T::load(x + i);
      const T middle = T::load(center + i);
      const T d = worker - middle;
      (worker - T::all(alpha_worker) * d).store(x + i);
      (middle + T::all(alpha_center) * d).store(center + i);
    });
  }

  static void elastic_delta(float* x, float* center, float alpha_worker, float alpha_center, std::size_t n) {
    each(n, [=]<class T>(std::size_t i) {
      const T middle = T::load(center + i);
      const T d = T::load(x + i) - middle;
      (T::all(alpha_worker) * d).store(x + i);
      (middle + T::all(alpha_center) * d).store(center + i);
    });
  }

  /// Takes kRegisters · width floats of every vector at a time and keeps the sum in registers: any number of vectors in one pass.
  static void reduce_all(const Span* all, std::size_t vectors, float scale, std::size_t n) {
    bool streaming = true;
    for (std::size_t v = 0; v < vectors; ++v) streaming = streaming && streams(all[v].data(), n);
    if (streaming)
      reduce<true>(all, vectors, scale, n);
    else
      reduce<false>(all, vectors, scale, n);
  }

  /// Streamed results bypass the caches: the lines that were read for the sum would be evicted soon anyway.
  template <bool kStream>
  static void reduce(const Span* all, std::size_t vectors, float scale, std::size_t n) {
    constexpr std::size_t kRegisters = 4;
    constexpr std::size_t kStep = kRegisters * kWidth;
    std::size_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      V sums[kRegisters];
      for (std::size_t r = 0; r < kRegisters; ++r) sums[r] = V::load(all[0].data() + i + r * kWidth);
      for (std::size_t v = 1; v < vectors; ++v) {
        const float* const from = all[v].data() + i;
        for (std::size_t r = 0; r < kRegisters; ++r) sums[r] = sums[r] + V::load(from + r * kWidth);
      }
      for (V& sum : sums) sum = V::all(scale) * sum;
      for (std::size_t v = 0; v < vectors; ++v) {
        float* const to = all[v].data() + i;
        for (std::size_t r = 0; r < kRegisters; ++r) {
          if constexpr (kStream)
            sums[r].stream(to + r * kWidth);
          else
            sums[r].store(to + r * kWidth);
        }
      }
    }
    if constexpr (kStream) V::fence();
    for (; i < n; ++i) {
      float sum = all[0].data()[i];
      for (std::size_t v = 1; v < vectors; ++v) sum += all[v].data()[i];
      for (std::size_t v = 0; v < vectors; ++v) all[v].data()[i] = scale * sum;
    }
  }

  static void broadcast_all(const Span* all, std::size_t vectors, std::size_t root, std::size_t n) {
    for (std::size_t begin = 0; begin < n; begin += kChunk) {
      const std::size_t size = n - begin < kChunk ? n - begin : kChunk;
      const float* const from = all[root].data() + begin;
      for (std::size_t v = 0; v < vectors; ++v) {
        if (v == root) continue;
        float* const target = all[v].data() + begin;
        if (streams(target, n))
          each(size, [=]<class T>(std::size_t i) { T::load(from + i).stream(target + i); });
        else
          each(size, [=]<class T>(std::size_t i) { T::load(from + i).store(target + i); });
      }
    }
    V::fence();
  }

  /// The limit is the first operand: if either operand is NaN, min and max return the second.
  static void clamp(float* y, float limit, std::size_t n) {
    each(n, [=]<class T>(std::size_t i) { max(T::all(-limit), min(T::all(limit), T::load(y + i))).store(y + i); });
  }

  /// Returns the change that the optimizer adds to x; updates its state.
  template <OptimizerKind kKind, class T>
  static T change(T x, T g, float* first, float* second, const StepNumbers& step) {
    using enum OptimizerKind;
    const T decayed = g + T::all(step.weight_decay) * x;
    if constexpr (kKind == sgd) {
      return T::all(-step.lr) * decayed;
    } else if constexpr (kKind == momentum || kKind == nesterov) {
      const T v = T::all(step.momentum) * T::load(first) - T::all(step.lr) * decayed;
      v.store(first);
      if constexpr (kKind == momentum) return v;
      return T::all(step.momentum) * v - T::all(step.lr) * decayed;
    } else if constexpr (kKind == adam || kKind == adamw) {
      const T gradient = kKind == adam ? decayed : g;
      const T m = T::all(step.momentum) * T::load(first) + T::all(1 - step.momentum) * gradient;
      const T r = T::all(step.decay) * T::load(second) + T::all(1 - step.decay) * (gradient * gradient);
      m.store(first);
      r.store(second);
      const T direction = T::all(step.first_scale) * m / (sqrt(T::all(step.second_scale) * r) + T::all(step.epsilon));
      if constexpr (kKind == adam) return T::all(-step.lr) * direction;
      return T::all(-step.lr) * (direction + T::all(step.weight_decay) * x);
    } else if constexpr (kKind == adadelta) {
      const T r = T::all(step.decay) * T::load(first) + T::all(1 - step.decay) * (decayed * decayed);
      const T old = T::load(second);
      const T change = sqrt(old + T::all(step.epsilon)) / sqrt(r + T::all(step.epsilon)) * decayed;
      r.store(first);
      (T::all(step.decay) * old + T::all(1 - step.decay) * (change * change)).store(second);
      return T::all(-step.lr) * change;
    } else {
      static_assert(kKind == rmsprop || kKind == rmsprop_inside || kKind == adagrad,
                    "an optimizer without its arithmetic");
      const T square = decayed * decayed;
      const T r = kKind == adagrad ? T::load(first) + square
                                   : T::all(step.decay) * T::load(first) + T::all(1 - step.decay) * square;
      r.store(first);
      if constexpr (kKind == rmsprop_inside)
        return T::all(-step.lr) * (decayed / sqrt(r + T::all(step.epsilon)));
      else
        return T::all(-step.lr) * (decayed / (sqrt(r) + T::all(step.epsilon)));
    }
  }

  template <OptimizerKind kKind>
  static void optimize(float* x, const float* g, float* first, float* second, std::size_t n, StepNumbers step) {
    each(n, [=]<class T>(std::size_t i) {
      const T old = T::load(x + i);
      (old + change<kKind>(old, T::load(g + i), first + i, second + i, step)).store(x + i);
    });
  }

  template <OptimizerKind kKind>
  static void optimize_delta(const float* x, float* g, float* first, float* second, std::size_t n, StepNumbers step) {
    each(n, [=]<class T>(std::size_t i) {
      change<kKind>(T::load(x + i), T::load(g + i), first + i, second + i, step).store(g + i);
    });
  }

  /// The remaining elements go through a padded vector: the same instruction gives the same bits.
  template <HalfKind kKind>
  static void narrow(std::uint16_t* y, const float* x, std::size_t n) {
    std::size_t i = 0;
    for (; i + kWidth <= n; i += kWidth) V::load(x + i).template store_half<kKind>(y + i);
    if (i == n) return;
    alignas(kAlignment) float rest[kWidth] = {};
    alignas(kAlignment) std::uint16_t halves[kWidth];
    for (std::size_t k = i; k < n; ++k) rest[k - i] = x[k];
    V::load(rest).template store_half<kKind>(halves);
    for (std::size_t k = i; k < n; ++k) y[k] = halves[k - i];
  }

  template <HalfKind kKind, class Combine>
  static void widen_each(float* y, const std::uint16_t* x, std::size_t n, Combine combine) {
    std::size_t i = 0;
    for (; i + kWidth <= n; i += kWidth) combine(y + i, V::template load_half<kKind>(x + i)).store(y + i);
    if (i == n) return;
    alignas(kAlignment) float rest[kWidth] = {};
    alignas(kAlignment) std::uint16_t halves[kWidth] = {};
    for (std::size_t k = i; k < n; ++k) rest[k - i] = y[k], halves[k - i] = x[k];
    combine(rest, V::template load_half<kKind>(halves)).store(rest);
    for (std::size_t k = i; k < n; ++k) y[k] = rest[k - i];
  }
  template <HalfKind kKind>
  static void widen(float* y, const std::uint16_t* x, std::size_t n) {
    widen_each<kKind>(y, x, n, [](const float*, V wide) { return wide; });
  }
  template <HalfKind kKind>
  static void add_wide(float* y, const std::uint16_t* x, std::size_t n) {
    widen_each<kKind>(y, x, n, [](const float* old, V wide) { return V::load(old) + wide; });
  }

  static double squared_norm(const float* x, std::size_t n) {
    using Double = typename V::Double;
    constexpr std::size_t kParts = kNormLanes / Double::kWidth;
    double total = 0;
    for (std::size_t begin = 0; begin < n; begin += kNormChunk) {
      const std::size_t size = n - begin < kNormChunk ? n - begin : kNormChunk;
      const float* const from = x + begin;
      Double parts[kParts];
      for (Double& part : parts) part = Double::zero();
      std::size_t i = 0;
      for (; i + kNormLanes <= size; i += kNormLanes)
        for (std::size_t part = 0; part < kParts; ++part) parts[part].add_square(from + i + part * Double::kWidth);
      alignas(kAlignment) double lanes[kNormLanes];
      for (std::size_t part = 0; part < kParts; ++part) parts[part].store(lanes + part * Double::kWidth);
      for (; i < size; ++i) lanes[i % kNormLanes] += static_cast<double>(from[i]) * static_cast<double>(from[i]);
      for (std::size_t half = kNormLanes / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      total += lanes[0];
    }
    return total;
  }

  /// x − x is 0 for finite x and NaN otherwise, and a NaN stays in the sum.
  static bool all_finite(const float* x, std::size_t n) {
    constexpr std::size_t kSums = 4;  // independent, so that additions overlap
    constexpr std::size_t kStep = kSums * kWidth;
    for (std::size_t begin = 0; begin < n; begin += kChunk) {
      const std::size_t size = n - begin < kChunk ? n - begin : kChunk;
      const float* const from = x + begin;
      V sums[kSums] = {V::all(0), V::all(0), V::all(0), V::all(0)};
      std::size_t i = 0;
      for (; i + kStep <= size; i += kStep)
        for (std::size_t s = 0; s < kSums; ++s) {
          const V element = V::load(from + i + s * kWidth);
          sums[s] = sums[s] + (element - element);
        }
      alignas(kAlignment) float lanes[kWidth];
      ((sums[0] + sums[1]) + (sums[2] + sums[3])).store(lanes);
      float sum = 0;
      for (const float lane : lanes) sum += lane;
      for (; i < size; ++i) sum += from[i] - from[i];
      if (sum != 0) return false;  // NaN
    }
    return true;
  }

  /// Compares once at the end of each chunk. A NaN exceeds every limit.
  static bool all_within(const float* x, float limit, std::size_t n) {
    constexpr std::size_t kParts = 4;
    constexpr std::size_t kStep = kParts * kWidth;
    for (std::size_t begin = 0; begin < n; begin += kChunk) {
      const std::size_t size = n - begin < kChunk ? n - begin : kChunk;
      const float* const from = x + begin;
      V largest[kParts] = {V::all(0), V::all(0), V::all(0), V::all(0)};
      std::size_t i = 0;
      for (; i + kStep <= size; i += kStep)
        for (std::size_t part = 0; part < kParts; ++part)
          largest[part] = larger(largest[part], V::load(from + i + part * kWidth));
      alignas(kAlignment) float lanes[kWidth];
      larger(larger(largest[0], largest[1]), larger(largest[2], largest[3])).store(lanes);
      for (const float lane : lanes)
        if (!(lane <= limit)) return false;
      for (; i < size; ++i)
        if (!(from[i] <= limit && from[i] >= -limit)) return false;
    }
    return true;
  }

  static constexpr std::size_t kChunk = 1024;  // 4 KiB: a page of each vector

  static constexpr HostLoops table() { return table(std::make_index_sequence<kOptimizerKinds>{}); }

  template <std::size_t... kRow>
  static constexpr HostLoops table(std::index_sequence<kRow...>) {
    return {fill,
            scale,
            axpy,
            scale_add,
            difference,
            elastic_pair,
            elastic_delta,
            reduce_all,
            broadcast_all,
            clamp,
            {narrow<HalfKind::fp16>, narrow<HalfKind::bf16>},
            {widen<HalfKind::fp16>, widen<HalfKind::bf16>},
            {add_wide<HalfKind::fp16>, add_wide<HalfKind::bf16>},
            {optimize<kOptimizers[kRow].kind>...},
            {optimize_delta<kOptimizers[kRow].kind>...},
            squared_norm,
            all_finite,
            all_within};
  }
};

}  // namespace troupe::core
