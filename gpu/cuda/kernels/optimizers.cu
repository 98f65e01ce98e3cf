#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const Optimize&, const LaunchTarget&);

}  // namespace troupe::gpu
