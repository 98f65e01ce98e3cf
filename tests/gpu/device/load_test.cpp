#include "gpu/device/load.hpp"

#include <gtest/gtest.h>

#include "core/loading/module.hpp"

namespace troupe::gpu {
namespace {

TEST(LoadDevice, WithoutTheModuleTheErrorNamesIt) {
  if (core::find_module("gpu")) GTEST_SKIP() << "the module is built";
  const auto device = load_device(0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, core::Errc::config);
  EXPECT_NE(device.error().message.find("troupe_gpu.so"), std::string::npos);
  EXPECT_FALSE(devices().built);
  EXPECT_FALSE(devices().no_module.empty());
}

/// The module loads where no driver and no library of CUDA is installed, and says what is missing.
TEST(LoadDevice, TheModuleLoadsEverywhereAndSaysWhyThereIsNoDevice) {
  if (!core::find_module("gpu")) GTEST_SKIP() << "the module is not built";
  const DeviceSurvey survey = devices();
  EXPECT_TRUE(survey.built) << survey.no_module;
  EXPECT_EQ(survey.devices.empty(), !survey.no_devices.empty());
  EXPECT_NE(survey.libraries.empty(), survey.no_libraries.empty());
  if (!survey.devices.empty()) GTEST_SKIP() << "there is a device";
  const auto device = load_device(0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, core::Errc::config);
}

TEST(LoadDevice, ADeviceThatDoesNotExistIsAnError) {
  const auto device = load_device(4096);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, core::Errc::config) << device.error().message;
}

}  // namespace
}  // namespace troupe::gpu
