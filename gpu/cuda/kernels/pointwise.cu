#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const Cast&, const LaunchTarget&);
template cudaError_t launch_call(const ActivationForward&, const LaunchTarget&);
template cudaError_t launch_call(const ActivationBackward&, const LaunchTarget&);
template cudaError_t launch_call(const AddUp&, const LaunchTarget&);

}  // namespace troupe::gpu
