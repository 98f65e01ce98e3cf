#include "sim/cluster/kernel_costs.hpp"

namespace troupe::sim {

using strategies::KernelName;

namespace {

std::uint32_t clipping(const core::OptimizerStep& step) noexcept {
  // By value: read and write. By norm: read for the norm, then read and write to scale.
  return (step.clip_value > 0 ? 2 : 0) + (step.clip_norm > 0 ? 3 : 0);
}

}  // namespace

std::uint32_t vectors_touched(const strategies::KernelCall& call) noexcept {
  switch (call.kernel) {
    case KernelName::fill: return 1;
    case KernelName::copy:
    case KernelName::scale: return 2;
    case KernelName::axpy:
    case KernelName::scale_add:
    case KernelName::difference: return 3;
    case KernelName::elastic_pair:
    case KernelName::elastic_delta: return 4;
    case KernelName::optimize:
    case KernelName::optimize_delta:
      // Reads x and g, writes one of them; reads and writes every state vector.
      return 3 + 2 * static_cast<std::uint32_t>(core::state_slots(call.optimizer.kind)) + clipping(call.optimizer);
    case KernelName::clip: return clipping(call.optimizer);
  }
  return 0;
}

}  // namespace troupe::sim
