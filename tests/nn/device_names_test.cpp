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

const Plan kH200{R"({"backend":"gpu","device":"NVIDIA H200","engines":{}})"};
const Plan kA100{R"({"backend":"gpu","device":"NVIDIA A100","engines":{}})"};

TEST(PlanParts, EachModelOfDeviceHasItsOwn) {
  const auto gpus = joined(kH200, kA100);
  EXPECT_EQ(part_for(gpus, "gpu", "NVIDIA H200")->json, kH200.json);
  EXPECT_EQ(part_for(gpus, "gpu", "NVIDIA A100")->json, kA100.json);
  EXPECT_FALSE(part_for(gpus, "gpu", "NVIDIA L4"));
  EXPECT_FALSE(part_for(kH200, "gpu", "NVIDIA A100")) << "its engines are another's";
  EXPECT_FALSE(part_for(gpus, "cpu", "cpu"));
  EXPECT_EQ(part_for(kCpu, "cpu", "cpu")->json, kCpu.json) << "a part without a device is for all";
  const auto all = joined(gpus, kCpu);
  EXPECT_EQ(part_for(all, "gpu", "NVIDIA A100")->json, kA100.json);
  EXPECT_EQ(part_for(all, "cpu", "cpu")->json, kCpu.json);
  EXPECT_EQ(part_for(all, "gpu")->json, gpus.json) << "all of one backend";
  EXPECT_EQ(joined(all, kA100).json, all.json) << "the first one stays";
  EXPECT_NE(all.json.find(R"("gpu":{)"), std::string::npos) << all.json;
  EXPECT_NE(all.json.find(R"("gpu: NVIDIA A100":{)"), std::string::npos) << all.json;
}

TEST(PlanParts, WhatNoBackendWroteIsLeftToTheBackend) {
  for (const auto* text :
       {"", "[]", "no json", R"({"backend":"tpu"})", R"({"backend":7})", R"({"backend":"mixed","parts":3})"})
    EXPECT_EQ(part_for(Plan{text}, "cpu")->json, text);
}

}  // namespace
}  // namespace troupe::nn
