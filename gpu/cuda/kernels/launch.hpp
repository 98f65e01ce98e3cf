/// Launches of Troupe's own kernels on a CUDA stream. The .cu files of this folder instantiate the bodies, some kernels each, so that none
/// takes long to compile. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {

/// Where a kernel runs. `blocks`: so many blocks of 256 threads at most for a kernel over elements; each thread takes several elements then.
struct LaunchTarget {
  cudaStream_t stream = nullptr;
  unsigned int blocks = 1;
};

/// Enqueues the kernel. The stream's device is the calling thread's current one.
[[nodiscard]] cudaError_t launch_kernel(const Kernel& kernel, const LaunchTarget& target);

/// One kind of kernel: the .cu files instantiate it.
template <class Call>
[[nodiscard]] cudaError_t launch_call(const Call& call, const LaunchTarget& target);

}  // namespace troupe::gpu
