// Gradients in virtual time on a backend whose arenas are device memory: as the CPU's of mirrors.
#include <gtest/gtest.h>

#include "sim/exchange/gradients.hpp"
#include "sim/forecast/forecast.hpp"
#include "tests/gpu/arenas/device_runs.hpp"

namespace troupe::tests {
namespace {

core::Result<sim::Forecast> simulated(const std::string& strategy, nn::Backend& backend) {
  const SmallRun run(run_options_of(strategy));
  return sim::forecast({.settings = run.settings().value(),
                        .cluster = sim::parse_cluster("[hosts.node]\ncount = 4\nstep_ms = 4\n[network]\n"
                                                      "latency_us = 50\ngbit_per_s = 1\n",
                                                      "c.toml", {})
                                       .value(),
                        .gradients = &backend});
}

TEST(DeviceArenas, SimulationComputesTheGradientsOfMirrors) {
  for (const char* strategy : {"bsp", "easgd", "gossip"}) {
    SCOPED_TRACE(strategy);
    const auto forecast = simulated(strategy, resident());
    const auto expected = simulated(strategy, mirrored());
    ASSERT_TRUE(forecast) << forecast.error().message;
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ(forecast->summary.test_loss, expected->summary.test_loss);
    EXPECT_EQ(forecast->summary.center_hash, expected->summary.center_hash);
  }
}

}  // namespace
}  // namespace troupe::tests
