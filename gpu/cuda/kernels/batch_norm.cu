#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const BatchNormForward&, const LaunchTarget&);
template cudaError_t launch_call(const BatchNormBackward&, const LaunchTarget&);

}  // namespace troupe::gpu
