#include "nn/device_names.hpp"

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

TEST(DeviceNames, AreReadWithTheirNumber) {
  EXPECT_EQ(parse_device_name("cpu"), (DeviceName{DeviceKind::cpu, {}}));
  EXPECT_EQ(parse_device_name("cuda"), (DeviceName{DeviceKind::cuda, {}}));
  EXPECT_EQ(parse_device_name("cuda:local"), (DeviceName{DeviceKind::cuda, {}}));
  EXPECT_EQ(parse_device_name("cuda:7"), (DeviceName{DeviceKind::cuda, 7}));
  EXPECT_EQ(parse_device_name("cuda_on_host"), (DeviceName{DeviceKind::cuda_on_host, {}}));
  EXPECT_EQ(parse_device_name("cuda_on_host:1"), (DeviceName{DeviceKind::cuda_on_host, 1}));
}

TEST(DeviceNames, OthersAreNone) {
  for (const auto* name :
       {"", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "cuda: 1", "cuda:1024", "tpu"})
    EXPECT_FALSE(parse_device_name(name)) << name;
}

const Plan kCpu{R"({"backend":"cpu","version":1})"};
const Plan kGpu{R"({"backend":"gpu","version":2})"};

TEST(PlanParts, PlanOfOneBackendIsItsOwnPart) {
  EXPECT_EQ(joined({}, kCpu).json, kCpu.json);
  EXPECT_EQ(joined(kCpu, Plan{R"({"backend":"cpu","version":9})"}).json, kCpu.json) << "the first one stays";
  EXPECT_EQ(part_for(kCpu, "cpu")->json, kCpu.json);
  EXPECT_FALSE(part_for(kCpu, "gpu"));
}

TEST(PlanParts, PlanOfSeveralHasOneOfEach) {
  const auto mixed = joined(kCpu, kGpu);
  EXPECT_EQ(part_for(mixed, "cpu")->json, kCpu.json);
  EXPECT_EQ(part_for(mixed, "gpu")->json, kGpu.json);
  EXPECT_EQ(joined(mixed, Plan{R"({"backend":"gpu","version":9})"}).json, mixed.json);
  EXPECT_EQ(joined(kCpu, mixed).json, mixed.json);
  EXPECT_FALSE(part_for(joined({}, Plan{R"({"backend":"mixed","parts":{}})"}), "cpu"));
}

TEST(PlanParts, WhatNoBackendWroteIsLeftToTheBackend) {
  for (const auto* text :
       {"", "[]", "no json", R"({"backend":"tpu"})", R"({"backend":7})", R"({"backend":"mixed","parts":3})"})
    EXPECT_EQ(part_for(Plan{text}, "cpu")->json, text);
}

}  // namespace
}  // namespace troupe::nn
