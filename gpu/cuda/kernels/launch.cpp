#include "gpu/cuda/kernels/launch.hpp"

namespace troupe::gpu {

cudaError_t launch_kernel(const Kernel& kernel, const LaunchTarget& target) {
  return std::visit([&](const auto& call) { return launch_call(call, target); }, kernel);
}

}  // namespace troupe::gpu
