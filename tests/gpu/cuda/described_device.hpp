/// A device that cuDNN knows by description only, for tests on machines without a GPU.
#pragma once

#include <optional>

#include <gtest/gtest.h>

#include "gpu/cuda/cudnn/graph.hpp"

namespace troupe::gpu::testing {

/// An H100 SXM: what its CUDA runtime reports.
inline constexpr const char* kH100 =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,
"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,
"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,
"totalGlobalMem":85029158912,"smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"cudaDeviceId":0,
"deviceVer":900,"driverVer":13000,"deviceName":"NVIDIA H100 80GB HBM3"})";

/// Skips where cuDNN is not installed.
class DescribedH100 : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = CudnnLibrary::open();
    if (!library) GTEST_SKIP() << library.error().message;
    auto target = CudnnTarget::described(*library, kH100);
    ASSERT_TRUE(target) << target.error().message;
    target_.emplace(std::move(*target));
  }
  std::optional<CudnnTarget> target_;
};

}  // namespace troupe::gpu::testing
