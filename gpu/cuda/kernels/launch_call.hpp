/// The launch of one kind of kernel; the .cu files instantiate it. Used by this folder only.
#pragma once

#include "gpu/cuda/kernels/launch.hpp"

namespace troupe::gpu {

template <class Call>
[[nodiscard]] cudaError_t launch_call(const Call& call, const LaunchTarget& target);

}  // namespace troupe::gpu
