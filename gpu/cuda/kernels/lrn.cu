#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const LrnForward&, const LaunchTarget&);
template cudaError_t launch_call(const LrnBackward&, const LaunchTarget&);

}  // namespace troupe::gpu
