#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const Dropout&, const LaunchTarget&);
template cudaError_t launch_call(const LossKernel&, const LaunchTarget&);

}  // namespace troupe::gpu
