#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const Xxh3&, const LaunchTarget&);

}  // namespace troupe::gpu
