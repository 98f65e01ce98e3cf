/// What a host says of itself between two steps, and what it takes back.
#include <gtest/gtest.h>

#include "strategies/host/worker_host.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

TEST(WorkerHostState, WhatNoHostSaidIsNotRestored) {
  const auto restored = [](const std::string& versions, const std::string& skips) {
    NotingPorts ports(2);
    WorkerHost host(std::make_unique<ScriptedWorker>([](const auto&...) {}), {ports, &ports, &ports, &ports}, {});
    const auto text = "step=1;epoch=0p+0;lr=0p+0;versions=" + versions + ";skips=" + std::to_string(skips.size()) +
                      ":" + skips + ";half=0:;";
    const auto result = host.restore(text);
    if (!result) {
      EXPECT_EQ(result.error().code, core::Errc::corrupt) << result.error().message;
    }
    return result.has_value();
  };
  EXPECT_TRUE(restored("0:3,1:4,", "to=1;weight=1p-2;\n"));
  EXPECT_TRUE(restored("0:3,1:4,", "to=1;weight=1p-2;")) << "the last line's end may be missing";
  EXPECT_FALSE(restored("0:3,1:4,", "to=1;weight=1p-2")) << "cut off";
  EXPECT_FALSE(restored("0:3,1:4,", "to=1;")) << "no weight";
  EXPECT_FALSE(restored("0:3,1:4,", "\n")) << "a line that says nothing";
  EXPECT_FALSE(restored("0:3,7:4,", "")) << "a version of a shard that there is not";
  EXPECT_FALSE(restored("0:3,1:4,2:5,", "")) << "too many shards";
  EXPECT_FALSE(restored("0:3,", "")) << "too few";
}

}  // namespace
}  // namespace troupe::strategies
