/// Arithmetic as a value: a kernel and its slots. Rules ask for it, hosts pass it on, ports map the slots to memory and run it. So
/// one place per memory space touches numbers, and a replay runs the same code.
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

/// y is written. For elastic_*, y is the worker's side and x the centre, and both are written. Semantics: core/kernels.hpp. An
/// optimizer's state vector is z; its second one is the slot of the same kind with the next index.
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
/// One optimizer step; optimize_delta writes the change of x into g instead. g is clipped first, as the step prescribes.
[[nodiscard]] KernelCall optimize(Slot x, Slot g, Slot state, const core::OptimizerStep& step);
[[nodiscard]] KernelCall optimize_delta(Slot x, Slot g, Slot state, const core::OptimizerStep& step);
/// Clips g as the step prescribes: for gradients that travel raw. The slot must be whole, never a shard's slice.
[[nodiscard]] KernelCall clip(Slot g, const core::OptimizerStep& step);

/// True if the call writes to `slot`.
[[nodiscard]] bool writes(const KernelCall& call, Slot slot) noexcept;
/// True if the call reads or writes `slot`.
[[nodiscard]] bool touches(const KernelCall& call, Slot slot) noexcept;

/// True if the call is a step of an optimizer, which changes the optimizer's state.
[[nodiscard]] bool steps_optimizer(const KernelCall& call) noexcept;

/// True if the result depends on where the vector is cut, because the call reads the whole vector at once. Clipping by norm does.
[[nodiscard]] bool needs_whole(const KernelCall& call) noexcept;

/// Runs `call`; `resolve` returns the memory of a slot. All resolved spans have equal length. State slots that the optimizer's kind
/// does not have are not resolved.
void run(const core::Kernels& kernels, const KernelCall& call, const std::function<core::Span(Slot)>& resolve);

}  // namespace troupe::strategies
