#include "gpu/cuda/kernels/launcher.cuh"

namespace troupe::gpu {

template cudaError_t launch_call(const Fill&, const LaunchTarget&);
template cudaError_t launch_call(const Scale&, const LaunchTarget&);
template cudaError_t launch_call(const ScaleBy&, const LaunchTarget&);
template cudaError_t launch_call(const Axpy&, const LaunchTarget&);
template cudaError_t launch_call(const ScaleAdd&, const LaunchTarget&);
template cudaError_t launch_call(const Difference&, const LaunchTarget&);
template cudaError_t launch_call(const ElasticPair&, const LaunchTarget&);
template cudaError_t launch_call(const ElasticDelta&, const LaunchTarget&);
template cudaError_t launch_call(const ReduceAll&, const LaunchTarget&);
template cudaError_t launch_call(const Clamp&, const LaunchTarget&);
template cudaError_t launch_call(const Narrow&, const LaunchTarget&);
template cudaError_t launch_call(const Widen&, const LaunchTarget&);
template cudaError_t launch_call(const SquaredNorm&, const LaunchTarget&);
template cudaError_t launch_call(const LimitNorm&, const LaunchTarget&);
template cudaError_t launch_call(const AllWithin&, const LaunchTarget&);

}  // namespace troupe::gpu
