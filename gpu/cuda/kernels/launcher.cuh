// How a body of gpu/kernels/bodies/ runs on the device: the Launcher of gpu/kernels/launch/dispatch.hpp for CUDA.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gpu/cuda/kernels/launch.hpp"
#include "gpu/kernels/launch/dispatch.hpp"

namespace troupe::gpu {

inline constexpr unsigned int kElementThreads = 256;
inline constexpr std::int64_t kMostBlocks = 0x7fffffff;  // of a grid's first dimension

/// Each thread takes the indices i, i + (number of threads), …
template <class Body>
__global__ void __launch_bounds__(kElementThreads)
    element_kernel(const __grid_constant__ Body body, const std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kElementThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kElementThreads + threadIdx.x; i < count; i += step)
    body(i);
}

/// Each block takes the body's blocks b, b + (number of blocks), … All threads of a block take the same path to each barrier.
template <class Body>
__global__ void __launch_bounds__(Body::kThreads)
    block_kernel(const __grid_constant__ Body body, const std::int64_t blocks) {
  __shared__ typename Body::Shared shared;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
#pragma unroll
    for (int phase = 0; phase < Body::kPhases; ++phase) {
      body.phase(phase, block, static_cast<int>(threadIdx.x), shared);
      __syncthreads();  // after the last phase too: the next block writes what this one reads
    }
  }
}

/// Keeps the first error; launches nothing after it.
class CudaLauncher {
 public:
  explicit CudaLauncher(const LaunchTarget& target) : target_(target) {}
  [[nodiscard]] cudaError_t error() const noexcept { return error_; }

  template <class Body>
  void elements(const Body& body, std::int64_t count) {
    check_body<Body>();
    if (error_ != cudaSuccess || count <= 0) return;
    const std::int64_t wanted = (count + kElementThreads - 1) / kElementThreads;
    const auto grid = static_cast<unsigned int>(std::min<std::int64_t>(wanted, target_.blocks));
    start(element_kernel<Body>, grid, kElementThreads, body, count);
  }

  template <class Body>
  void blocks(const Body& body) {
    check_body<Body>();
    static_assert(sizeof(typename Body::Shared) <= 48 * 1024 && Body::kThreads <= 1024);
    const std::int64_t count = body.blocks();
    if (error_ != cudaSuccess || count <= 0) return;
    const auto grid = static_cast<unsigned int>(std::min(count, kMostBlocks));
    start(block_kernel<Body>, grid, Body::kThreads, body, count);
  }

 private:
  /// The call gives the error of this launch. With <<<>>> it would be the thread's last error, which may be an older one of another call.
  template <class Body>
  void start(void (*kernel)(Body, std::int64_t), unsigned int grid, unsigned int threads, const Body& body,
             std::int64_t count) {
    void* arguments[] = {const_cast<Body*>(&body), &count};  // copied by the launch
    error_ = cudaLaunchKernel(kernel, dim3(grid), dim3(threads), arguments, 0, target_.stream);
  }

  template <class Body>
  static constexpr void check_body() {
    static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= 4000);  // parameters of a kernel: 4 KiB
  }

  LaunchTarget target_;
  cudaError_t error_ = cudaSuccess;
};

template <class Call>
cudaError_t launch_call(const Call& call, const LaunchTarget& target) {
  CudaLauncher launcher(target);
  launches::launch(call, launcher);
  return launcher.error();
}

}  // namespace troupe::gpu
