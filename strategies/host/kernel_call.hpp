/// Arithmetic as a value: which kernel on which slots. Halves ask for it, hosts pass it on, ports resolve the slots to memory
/// and run it. So numbers are touched in one place per memory space, and a replay touches the same ones.
#pragma once

#include <functional>

#include "core/kernels.hpp"
#include "strategies/host/types.hpp"

namespace troupe::strategies {

enum class KernelName : std::uint8_t {
  fill,
  copy,
  scale,
  axpy,
  scale_add,
  difference,
  elastic_pair,
  elastic_delta,
  optimize,
  optimize_delta,
  clip,
};

/// y is written (elastic_*: y is the worker's side and x the centre, and both are written). Semantics: core/kernels.hpp.
/// An optimizer's state vectors are z and, for a second one, the slot of the same kind with the next index.
struct KernelCall {
  KernelName kernel = KernelName::copy;
  Slot y;
  Slot x;
  Slot z;
  float a = 0;
  float b = 0;
  core::OptimizerStep optimizer{};
  bool operator==(const KernelCall&) const = default;
};

[[nodiscard]] KernelCall fill(Slot y, float value);                    ///< y ← value
[[nodiscard]] KernelCall copy(Slot y, Slot x);                         ///< y ← x
[[nodiscard]] KernelCall scale(Slot y, float a);                       ///< y ← a y
[[nodiscard]] KernelCall axpy(Slot y, float a, Slot x);                ///< y ← y + a x
[[nodiscard]] KernelCall scale_add(Slot y, float a, float b, Slot x);  ///< y ← a y + b x
[[nodiscard]] KernelCall difference(Slot y, Slot x, Slot z);           ///< y ← x − z
[[nodiscard]] KernelCall elastic_pair(Slot worker, Slot center, float alpha_worker, float alpha_center);
[[nodiscard]] KernelCall elastic_delta(Slot worker, Slot center, float alpha_worker, float alpha_center);
/// One optimizer step, or the change of x that it would make in g. g is clipped first, as the step says.
[[nodiscard]] KernelCall optimize(Slot x, Slot g, Slot state, const core::OptimizerStep& step);
[[nodiscard]] KernelCall optimize_delta(Slot x, Slot g, Slot state, const core::OptimizerStep& step);
/// Clips g as the step says: for gradients that travel raw. A slot that is whole, never a shard's slice.
[[nodiscard]] KernelCall clip(Slot g, const core::OptimizerStep& step);

/// Does the call write to `slot`?
[[nodiscard]] bool writes(const KernelCall& call, Slot slot) noexcept;
/// Does it read or write it?
[[nodiscard]] bool touches(const KernelCall& call, Slot slot) noexcept;

/// Is it a step of an optimizer, which moves the optimizer's state on?
[[nodiscard]] bool steps_optimizer(const KernelCall& call) noexcept;

/// Does it read the whole vector at once, so that the result depends on where the vector is cut? Clipping by norm does.
[[nodiscard]] bool needs_whole(const KernelCall& call) noexcept;

/// Runs `call` with `resolve` giving each slot's memory. All resolved spans have equal length; state slots that the optimizer's
/// rule does not have are not resolved.
void run(const core::Kernels& kernels, const KernelCall& call, const std::function<core::Span(Slot)>& resolve);

}  // namespace troupe::strategies
