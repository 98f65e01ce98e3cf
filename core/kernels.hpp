/// The arithmetic of exchanges and optimizers over flat float32 vectors; one implementation per memory space. Strategies name
/// kernels and never touch numbers; hosts, actors, simulator and replay run them through this interface. Each kernel is one
/// element-wise pass over memory, so its result does not depend on how a vector was cut into slices. All spans of one call have
/// equal length and are aligned to kAlignment. Two of them may be the same span only where the comment allows it.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

#include "core/buffer.hpp"
#include "core/half.hpp"
#include "core/optimizers/optimizers.hpp"

namespace troupe::core {

using Span = std::span<float>;
using ConstSpan = std::span<const float>;

/// The largest magnitude that training needs. A number up to this limit stays finite in float32 when it is squared and when such
/// numbers are summed over any number of workers.
inline constexpr float kLargestUsable = 0x1p50F;

/// The numbers of one step of an optimizer (core/optimizers/optimizers.hpp). g' = g + weight_decay · x, then
///   sgd:       x ← x − lr g'
///   momentum:  v ← μ v − lr g';  x ← x + v
///   nesterov:  v ← μ v − lr g';  x ← x + μ v − lr g'     (x is the look-ahead point y = x̂ + μ v; Sutskever et al. 2013)
///   rmsprop:   r ← ρ r + (1 − ρ) g'²;  x ← x − lr g' / (√r + ε)                             (Tieleman & Hinton 2012)
///   adagrad:   r ← r + g'²;  x ← x − lr g' / (√r + ε)                                       (Duchi et al. 2011)
///   adam:      m ← μ m + (1 − μ) g';  r ← ρ r + (1 − ρ) g'²;  x ← x − lr m̂ / (√r̂ + ε),
///              m̂ = m / (1 − μ^t), r̂ = r / (1 − ρ^t)                                          (Kingma & Ba 2015)
///   adamw:     adam with g for g', then Δ ← Δ − lr · weight_decay · x              (Loshchilov & Hutter 2019; as PyTorch's)
///   adadelta:  r ← ρ r + (1 − ρ) g'²;  d = √(u + ε) / √(r + ε) · g';  u ← ρ u + (1 − ρ) d²;  x ← x − lr d      (Zeiler 2012)
///   rmsprop_inside:  as rmsprop, with √(r + ε) for √r + ε                                                  (TensorFlow's)
/// x is rounded as x + Δ with the Δ of optimize_delta, so a change that is applied later gives the same bits.
struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::sgd;
  float lr = 0;
  float momentum = 0;  // μ
  float weight_decay = 0;
  float decay = 0.999f;  // ρ: of the mean of squares
  float epsilon = 1e-8f;
  float clip_value =
      0;  // limits that clip() applies to g before the step; 0: none. The kernels of the step ignore them
  float clip_norm = 0;
  std::uint64_t t = 1;  // number of the step, from 1
  bool operator==(const OptimizerStep&) const = default;
};

/// An optimizer's state vectors; a vector that its kind does not have may be empty. first: v, r, or adam's m; second: adam's r,
/// adadelta's u. adamw's are adam's.
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

/// A device that kernels run on has failed: Errc::io for a lost one. Kernels have no other way to say so; host kernels never throw it.
class KernelsFailed : public std::runtime_error {
 public:
  explicit KernelsFailed(const Error& error) : std::runtime_error(error.message), code_(error.code) {}
  [[nodiscard]] Error error() const { return {code_, what()}; }

 private:
  Errc code_;
};

/// Element-wise kernels on one memory space. On the host, implementations are stateless: they are thread-safe if the spans of
/// concurrent calls do not overlap. On a device, their stream orders them.
class Kernels {
 public:
  virtual ~Kernels() = default;
  [[nodiscard]] virtual MemorySpace space() const noexcept = 0;

  virtual void fill(Span y, float value) const = 0;  ///< y ← value
  virtual void copy(Span y, ConstSpan x) const = 0;  ///< y ← x
  /// Between this memory and plain host memory, which need not be aligned: y ← host, host ← x. On the host these are copies.
  virtual void upload(Span y, ConstSpan host) const;
  virtual void download(Span host, ConstSpan x) const;
  /// Returns when the calling thread's work on this memory is done: other threads may use it from then on. On the host it is done at once.
  virtual void finish() const {}
  virtual void scale(Span y, float a) const = 0;                            ///< y ← a y
  virtual void axpy(Span y, float a, ConstSpan x) const = 0;                ///< y ← y + a x
  virtual void scale_add(Span y, float a, float b, ConstSpan x) const = 0;  ///< y ← a y + b x
  virtual void difference(Span y, ConstSpan a, ConstSpan b) const = 0;      ///< y ← a − b; y may be a or b

  /// Elastic averaging of one worker's x with the centre c (Zhang et al. 2015, eq. 4); right sides from before the call:
  ///   d = x − c;  x ← x − alpha_worker d;  c ← c + alpha_center d
  virtual void elastic_pair(Span x, Span center, float alpha_worker, float alpha_center) const = 0;
  /// For a worker that computes meanwhile: x ← alpha_worker d (the worker subtracts it later);  c ← c + alpha_center d
  virtual void elastic_delta(Span x, Span center, float alpha_worker, float alpha_center) const = 0;

  /// Every vector of `all` ← scale · Σ all, summed in list order from the left in float32. At least one vector.
  virtual void reduce_all(std::span<const Span> all, float scale) const = 0;
  /// Every vector of `all` except all[root] ← all[root].
  virtual void broadcast_all(std::span<const Span> all, std::size_t root) const = 0;

  virtual void clamp(Span y, float limit) const = 0;  ///< y ← min(max(y, −limit), limit); NaN stays

  virtual void narrow(HalfSpan y, ConstSpan x, HalfKind kind) const = 0;    ///< y ← x, rounded as to_half does
  virtual void widen(Span y, ConstHalfSpan x, HalfKind kind) const = 0;     ///< y ← x
  virtual void add_wide(Span y, ConstHalfSpan x, HalfKind kind) const = 0;  ///< y ← y + x

  /// One optimizer step.
  virtual void optimize(Span x, ConstSpan g, OptimizerState state, const OptimizerStep& step) const = 0;
  /// Writes the change that `optimize` would add to x into g and leaves x as it is: g ← Δx. Updates the state.
  virtual void optimize_delta(ConstSpan x, Span g, OptimizerState state, const OptimizerStep& step) const = 0;

  /// Σ x² in float64, over fixed chunks in fixed order: the result does not depend on the number of threads.
  [[nodiscard]] virtual double squared_norm(ConstSpan x) const = 0;
  [[nodiscard]] virtual bool all_finite(ConstSpan x) const = 0;
  [[nodiscard]] virtual bool all_within(ConstSpan x, float limit) const = 0;  ///< every |x| ≤ limit, and no NaN
};

/// Gradient clipping: each element to [−value, value], then the whole to a Euclidean norm of at most `norm`,
/// g ← g · min(1, norm / ‖g‖) (Pascanu et al. 2013). 0: no limit. If the norm is not finite, g stays as it is.
/// This is the only function here that needs the whole vector, not a slice.
void clip(const Kernels& kernels, Span g, float value, float norm);

/// Plain C++ loops: the definition against which the fast versions are tested.
[[nodiscard]] const Kernels& reference_kernels() noexcept;
/// The fastest kernels of this CPU (AVX-512, AVX2 or the reference), chosen at the first call. Equal to the reference bit for bit
/// (except NaN payloads), wherever a vector was cut. Throws std::invalid_argument for vectors of unequal length.
[[nodiscard]] const Kernels& host_kernels() noexcept;

}  // namespace troupe::core
