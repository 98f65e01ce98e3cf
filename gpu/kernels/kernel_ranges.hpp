/// The memory that a kernel touches, from its call alone: HostDevice checks it, as a device would not. Thread rule: pure function.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {

struct KernelRange {
  const char* name;  // of the call's member
  const void* memory;
  std::size_t bytes;
};

/// What the call names: all that its bodies may read or write, at least 1 byte each. An operand that a call may leave out is not listed if
/// it is null.
[[nodiscard]] std::vector<KernelRange> ranges_of(const Kernel& kernel);

}  // namespace troupe::gpu
