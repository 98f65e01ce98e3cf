/// How fast a device runs the kernels over flat vectors, which memory limits, beside its own copy of as many bytes. For `troupe bench device`.
/// Thread rule: the calling thread.
#pragma once

#include <string>
#include <vector>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

struct VectorRate {
  std::string name;      // "elastic_pair", "adam"
  double gb_per_s = 0;   // 1e9 bytes that the kernel must read and write
  double of_a_copy = 0;  // its rate by that of the copy of the same round; the median round
};

/// Vectors of `floats` floats: seven in device memory. In each of `rounds` rounds kernel and copy alternate, as many times as a round is worth
/// measuring, and the caller waits at each end. The first row is the copy.
[[nodiscard]] core::Result<std::vector<VectorRate>> vector_rates(Device& device, std::size_t floats, int rounds);

}  // namespace troupe::gpu
