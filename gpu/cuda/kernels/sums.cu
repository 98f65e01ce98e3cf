#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const ColumnSums&, const LaunchTarget&);
template cudaError_t launch_call(const BatchStatistics&, const LaunchTarget&);
template cudaError_t launch_call(const MoveStatistics&, const LaunchTarget&);
template cudaError_t launch_call(const BatchNormGradients&, const LaunchTarget&);

}  // namespace troupe::gpu
