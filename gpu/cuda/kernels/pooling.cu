#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const PoolForward&, const LaunchTarget&);
template cudaError_t launch_call(const PoolBackward&, const LaunchTarget&);
template cudaError_t launch_call(const AdaptivePoolForward&, const LaunchTarget&);
template cudaError_t launch_call(const AdaptivePoolBackward&, const LaunchTarget&);

}  // namespace troupe::gpu
