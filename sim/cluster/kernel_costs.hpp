/// The cost of a kernel in virtual time: bytes read and written divided by the speed of their memory. Every kernel is one pass over
/// memory (core/kernels.hpp), so nothing else counts.
#pragma once

#include "strategies/host/kernel_call.hpp"

namespace troupe::sim {

/// Vectors that `call` reads plus vectors that it writes: elastic_pair reads two and writes two, 4. Clipping by norm is a pass of its
/// own: the norm must be known before anything is scaled.
[[nodiscard]] std::uint32_t vectors_touched(const strategies::KernelCall& call) noexcept;

/// Bytes for vectors of `floats` floats.
[[nodiscard]] inline std::uint64_t bytes_touched(const strategies::KernelCall& call, std::uint64_t floats) noexcept {
  return vectors_touched(call) * floats * sizeof(float);
}

}  // namespace troupe::sim
