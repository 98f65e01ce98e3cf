#include "strategies/host/kernel_call.hpp"

namespace troupe::strategies {

KernelCall fill(Slot y, float value) { return {.kernel = KernelName::fill, .y = y, .x = y, .z = y, .a = value}; }
KernelCall copy(Slot y, Slot x) { return {.kernel = KernelName::copy, .y = y, .x = x, .z = x}; }
KernelCall scale(Slot y, float a) { return {.kernel = KernelName::scale, .y = y, .x = y, .z = y, .a = a}; }
KernelCall axpy(Slot y, float a, Slot x) { return {.kernel = KernelName::axpy, .y = y, .x = x, .z = x, .a = a}; }
KernelCall scale_add(Slot y, float a, float b, Slot x) {
  return {.kernel = KernelName::scale_add, .y = y, .x = x, .z = x, .a = a, .b = b};
}
KernelCall difference(Slot y, Slot x, Slot z) { return {.kernel = KernelName::difference, .y = y, .x = x, .z = z}; }
KernelCall elastic_pair(Slot worker, Slot center, float alpha_worker, float alpha_center) {
  return {
      .kernel = KernelName::elastic_pair, .y = worker, .x = center, .z = center, .a = alpha_worker, .b = alpha_center};
}
KernelCall elastic_delta(Slot worker, Slot center, float alpha_worker, float alpha_center) {
  return {
      .kernel = KernelName::elastic_delta, .y = worker, .x = center, .z = center, .a = alpha_worker, .b = alpha_center};
}
KernelCall optimize(Slot x, Slot g, Slot state, const core::OptimizerStep& step) {
  return {.kernel = KernelName::optimize, .y = x, .x = g, .z = state, .optimizer = step};
}
KernelCall optimize_delta(Slot x, Slot g, Slot state, const core::OptimizerStep& step) {
  return {.kernel = KernelName::optimize_delta, .y = g, .x = x, .z = state, .optimizer = step};
}
KernelCall clip(Slot g, const core::OptimizerStep& step) {
  return {.kernel = KernelName::clip, .y = g, .x = g, .z = g, .optimizer = step};
}

namespace {

bool optimizes(const KernelCall& call) noexcept {
  return call.kernel == KernelName::optimize || call.kernel == KernelName::optimize_delta;
}
bool clips(const core::OptimizerStep& step) noexcept { return step.clip_value > 0 || step.clip_norm > 0; }
Slot second_state(const KernelCall& call) noexcept {
  return {call.z.kind, static_cast<std::uint8_t>(call.z.index + 1)};
}
bool is_second_state(const KernelCall& call, Slot slot) noexcept {
  return optimizes(call) && core::state_slots(call.optimizer.kind) > 1 && slot == second_state(call);
}

}  // namespace

bool writes(const KernelCall& call, Slot slot) noexcept {
  if (call.y == slot) return true;
  switch (call.kernel) {
    case KernelName::elastic_pair:
    case KernelName::elastic_delta: return call.x == slot;
    case KernelName::optimize:
    case KernelName::optimize_delta:
      return call.z == slot || is_second_state(call, slot) ||
             (call.x == slot && clips(call.optimizer) && call.kernel == KernelName::optimize);
    default: return false;
  }
}

bool touches(const KernelCall& call, Slot slot) noexcept {
  // A call with fewer operands repeats one of them.
  return call.y == slot || call.x == slot || call.z == slot || is_second_state(call, slot);
}

bool steps_optimizer(const KernelCall& call) noexcept {
  return call.kernel == KernelName::optimize || call.kernel == KernelName::optimize_delta;
}

bool needs_whole(const KernelCall& call) noexcept {
  return (optimizes(call) || call.kernel == KernelName::clip) && call.optimizer.clip_norm > 0;
}

void run(const core::Kernels& kernels, const KernelCall& call, const std::function<core::Span(Slot)>& resolve) {
  const auto y = resolve(call.y);
  const auto state = [&]() -> core::OptimizerState {
    switch (core::state_slots(call.optimizer.kind)) {
      case 0: return {};
      case 1: return {resolve(call.z)};
      default: return {resolve(call.z), resolve(second_state(call))};
    }
  };
  const auto clipped = [&](core::Span g) {
    core::clip(kernels, g, call.optimizer.clip_value, call.optimizer.clip_norm);
    return g;
  };
  switch (call.kernel) {
    case KernelName::fill: return kernels.fill(y, call.a);
    case KernelName::copy: return kernels.copy(y, resolve(call.x));
    case KernelName::scale: return kernels.scale(y, call.a);
    case KernelName::axpy: return kernels.axpy(y, call.a, resolve(call.x));
    case KernelName::scale_add: return kernels.scale_add(y, call.a, call.b, resolve(call.x));
    case KernelName::difference: return kernels.difference(y, resolve(call.x), resolve(call.z));
    case KernelName::elastic_pair: return kernels.elastic_pair(y, resolve(call.x), call.a, call.b);
    case KernelName::elastic_delta: return kernels.elastic_delta(y, resolve(call.x), call.a, call.b);
    case KernelName::optimize: return kernels.optimize(y, clipped(resolve(call.x)), state(), call.optimizer);
    case KernelName::optimize_delta:
      return kernels.optimize_delta(resolve(call.x), clipped(y), state(), call.optimizer);
    case KernelName::clip: clipped(y); return;
  }
}

}  // namespace troupe::strategies
