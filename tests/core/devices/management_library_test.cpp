#include "core/devices/management_library.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(ManagementLibrary, TellsLoadAndMemoryOfEachDevice) {
  for (int again = 0; again < 2; ++again) {
    const auto states = gpu_states(TROUPE_FAKE_NVML_LIBRARY);
    ASSERT_TRUE(states) << states.error().message;
    EXPECT_EQ(*states,
              (std::vector<GpuState>{{"NVIDIA H200", "GPU-1111", 34, std::uint64_t{140} << 30, std::uint64_t{25} << 29},
                                     {"NVIDIA H200 MIG 1g.18gb", "GPU-2222", {}, std::uint64_t{18} << 30, 0}}));
    EXPECT_EQ(to_text(states->at(0)), "34 % busy, 12.5 of 140.0 GiB in use");
    EXPECT_EQ(to_text(states->at(1)), "load unknown, 0.0 of 18.0 GiB in use");
  }
  EXPECT_EQ(to_text(GpuState{}), "load unknown");
}

TEST(ManagementLibrary, AFailedCallIsNamedWithItsReason) {
  for (const char* call : {"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName",
                           "nvmlDeviceGetUUID", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"}) {
    ::setenv("TROUPE_FAKE_NVML", call, 1);
    const auto states = gpu_states(TROUPE_FAKE_NVML_LIBRARY);
    ::unsetenv("TROUPE_FAKE_NVML");
    ASSERT_FALSE(states) << call;
    EXPECT_EQ(states.error().code, Errc::io);
    EXPECT_EQ(states.error().message, std::string("NVML: ") + call + ": Unknown Error");
  }
}

TEST(ManagementLibrary, AMissingLibraryAndAnotherOneAreErrors) {
  const auto missing = gpu_states("libno-such-nvml.so.1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::config);
  EXPECT_NE(missing.error().message.find("libno-such-nvml.so.1"), std::string::npos) << missing.error().message;
  const auto other = gpu_states("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("libm.so.6 has no nvmlInit_v2"), std::string::npos) << other.error().message;
}

}  // namespace
}  // namespace troupe::core
