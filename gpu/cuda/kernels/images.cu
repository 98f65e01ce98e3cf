#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const ImagesToNhwc&, const LaunchTarget&);
template cudaError_t launch_call(const BytesToNhwc&, const LaunchTarget&);
template cudaError_t launch_call(const CopyChannels&, const LaunchTarget&);
template cudaError_t launch_call(const Transpose&, const LaunchTarget&);

}  // namespace troupe::gpu
