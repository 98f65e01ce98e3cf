/// The arithmetic of exchanges and optimizers over flat float32 vectors, once per memory space. Strategies name kernels and
/// never touch numbers; hosts, actors, simulator and replay run them through this interface.
/// Each kernel is one pass over memory, element-wise, so a result does not depend on how a vector was cut into slices.
/// All spans of one call have equal length and are aligned to kAlignment; they may be the same span only where said so.
#pragma once

#include <cstdint>
#include <span>

#include "core/buffer.hpp"
#include "core/half.hpp"

namespace troupe::core {

using Span = std::span<float>;
using ConstSpan = std::span<const float>;

/// The largest magnitude that training has a use for. What is not larger can be squared, and summed over any number of workers, and is
/// still finite in float32.
inline constexpr float kLargestUsable = 0x1p50F;

/// Element-wise optimizer rules. State vectors: sgd none; adam two; the others one.
enum class OptimizerKind : std::uint8_t { sgd, momentum, nesterov, rmsprop, adagrad, adam };
inline constexpr std::size_t kOptimizerKinds = 6;

/// One step's numbers. g' = g + weight_decay · x, then
///   sgd:       x ← x − lr g'
///   momentum:  v ← μ v − lr g';  x ← x + v
///   nesterov:  v ← μ v − lr g';  x ← x + μ v − lr g'     (x is the look-ahead point y = x̂ + μ v; Sutskever et al. 2013)
///   rmsprop:   r ← ρ r + (1 − ρ) g'²;  x ← x − lr g' / (√r + ε)                             (Tieleman & Hinton 2012)
///   adagrad:   r ← r + g'²;  x ← x − lr g' / (√r + ε)                                       (Duchi et al. 2011)
///   adam:      m ← μ m + (1 − μ) g';  r ← ρ r + (1 − ρ) g'²;  x ← x − lr m̂ / (√r̂ + ε),
///              m̂ = m / (1 − μ^t), r̂ = r / (1 − ρ^t)                                          (Kingma & Ba 2015)
/// x rounds as x + Δ with the Δ that optimize_delta gives, so a change that is applied later gives the same bits.
struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::sgd;
  float lr = 0;
  float momentum = 0;  // μ
  float weight_decay = 0;
  float decay = 0.999f;  // ρ: of the mean of squares
  float epsilon = 1e-8f;
  float clip_value =
      0;  // what clip() is to do to g before the step; 0: nothing. The kernels of the step do not look at it
  float clip_norm = 0;
  std::uint64_t t = 1;  // number of the step, from 1
  bool operator==(const OptimizerStep&) const = default;
};

[[nodiscard]] constexpr int state_slots(OptimizerKind kind) noexcept {
  return kind == OptimizerKind::sgd ? 0 : kind == OptimizerKind::adam ? 2 : 1;
}

/// An optimizer's state vectors; those that its kind does not have may be empty. first: v, r, or adam's m; second: adam's r.
struct OptimizerState {
  OptimizerState() = default;
  OptimizerState(Span first, Span second = {}) noexcept : first(first), second(second) {}
  [[nodiscard]] OptimizerState part(std::size_t offset, std::size_t count) const {
    return {first.empty() ? first : first.subspan(offset, count),
            second.empty() ? second : second.subspan(offset, count)};
  }
  Span first;
  Span second;
};

/// Element-wise kernels on one memory space. Implementations are stateless on the host (thread-safe as long as the spans of
/// concurrent calls do not overlap) and ordered by their stream on a device.
class Kernels {
 public:
  virtual ~Kernels() = default;
  [[nodiscard]] virtual MemorySpace space() const noexcept = 0;

  virtual void fill(Span y, float value) const = 0;                         ///< y ← value
  virtual void copy(Span y, ConstSpan x) const = 0;                         ///< y ← x
  virtual void scale(Span y, float a) const = 0;                            ///< y ← a y
  virtual void axpy(Span y, float a, ConstSpan x) const = 0;                ///< y ← y + a x
  virtual void scale_add(Span y, float a, float b, ConstSpan x) const = 0;  ///< y ← a y + b x
  virtual void difference(Span y, ConstSpan a, ConstSpan b) const = 0;      ///< y ← a − b; y may be a or b

  /// Elastic averaging of one worker's x with the centre c (Zhang et al. 2015, eq. 4), both from before the call:
  ///   d = x − c;  x ← x − alpha_worker d;  c ← c + alpha_center d
  virtual void elastic_pair(Span x, Span center, float alpha_worker, float alpha_center) const = 0;
  /// The same for a worker that goes on meanwhile: x ← alpha_worker d (to be subtracted later);  c ← c + alpha_center d
  virtual void elastic_delta(Span x, Span center, float alpha_worker, float alpha_center) const = 0;

  /// Every vector of `all` ← scale · Σ all, summed in list order from the left in float32. At least one vector.
  virtual void reduce_all(std::span<const Span> all, float scale) const = 0;
  /// Every vector of `all` but all[root] ← all[root].
  virtual void broadcast_all(std::span<const Span> all, std::size_t root) const = 0;

  virtual void clamp(Span y, float limit) const = 0;  ///< y ← min(max(y, −limit), limit); NaN stays

  virtual void narrow(HalfSpan y, ConstSpan x, HalfKind kind) const = 0;    ///< y ← x, rounded as to_half does
  virtual void widen(Span y, ConstHalfSpan x, HalfKind kind) const = 0;     ///< y ← x
  virtual void add_wide(Span y, ConstHalfSpan x, HalfKind kind) const = 0;  ///< y ← y + x

  /// One optimizer step.
  virtual void optimize(Span x, ConstSpan g, OptimizerState state, const OptimizerStep& step) const = 0;
  /// The change that `optimize` would add to x goes to g instead, x stays: g ← Δx; the state moves on.
  virtual void optimize_delta(ConstSpan x, Span g, OptimizerState state, const OptimizerStep& step) const = 0;

  /// Σ x², float64, over fixed chunks in fixed order: the same for any number of threads.
  [[nodiscard]] virtual double squared_norm(ConstSpan x) const = 0;
  [[nodiscard]] virtual bool all_finite(ConstSpan x) const = 0;
  [[nodiscard]] virtual bool all_within(ConstSpan x, float limit) const = 0;  ///< every |x| ≤ limit, and no NaN
};

/// Gradient clipping: each element to [−value, value], then the whole to a Euclidean norm of at most `norm`,
/// g ← g · min(1, norm / ‖g‖) (Pascanu et al. 2013). 0: no limit. A norm that is not finite leaves g as it is.
/// Of all vectors here only this one must not be cut into slices.
void clip(const Kernels& kernels, Span g, float value, float norm);

/// Plain C++ loops: the definition that the fast versions are tested against.
[[nodiscard]] const Kernels& reference_kernels() noexcept;
/// The fastest this CPU runs (AVX-512, AVX2 or the reference), chosen at the first call. Equal to the reference bit for bit
/// (NaN payloads aside), wherever a vector was cut. A call with vectors of unequal length throws std::invalid_argument.
[[nodiscard]] const Kernels& host_kernels() noexcept;

}  // namespace troupe::core
