// The bytes of a forecast are those that a run with the same exchanges counts.
#include <gtest/gtest.h>

#include "experiment/state/wire_bytes.hpp"
#include "tests/sim/scenario.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t kFloats = 10'000;
constexpr std::uint32_t kWorkers = 4;
const strategies::Group kAll{0, 1, 2, 3};
constexpr const char* kOneHost = "[hosts.node]\ndevices = 4\nstep_ms = 10\n";
constexpr const char* kTwoHosts = "[hosts.node]\ncount = 2\ndevices = 2\nstep_ms = 10\n[network]\ngbit_per_s = 10\n";

SimulationResult forecast(const std::vector<std::string>& settings, Algorithm algorithm, const char* cluster) {
  auto run = run_of({.settings = settings, .workers = kWorkers, .floats = kFloats, .batches = 5 * kWorkers});
  run.algorithm = algorithm;
  return simulate(run, cluster).value();
}

std::uint64_t counted(strategies::WorkerId self, Algorithm algorithm, std::vector<std::uint32_t> hosts,
                      std::optional<strategies::WorkerId> root = {}) {
  const experiment::ExchangePlan plan{.endpoint = "tcp",
                                      .worker_sites = {0, 1, 2, 3},
                                      .site_hosts = std::move(hosts),
                                      .reductions = {{.algorithm = algorithm}}};
  return experiment::WireBytes(self, plan, nullptr).collective(kAll, root, strategies::Rounding::both, {}, kFloats);
}

TEST(ExchangeBytes, OfReductionsAreThoseThatARunCounts) {
  for (const auto algorithm : {Algorithm::asa, Algorithm::asa16, Algorithm::ring, Algorithm::hierarchical})
    for (const auto& [cluster, hosts] : {std::pair{kOneHost, std::vector<std::uint32_t>{0, 0, 0, 0}},
                                         std::pair{kTwoHosts, std::vector<std::uint32_t>{0, 0, 1, 1}}}) {
      const auto result = forecast({"strategy.name=bsp"}, algorithm, cluster);
      for (strategies::WorkerId w = 0; w < kWorkers; ++w) {
        ASSERT_EQ(result.workers[w].steps, 5U);
        EXPECT_EQ(result.workers[w].bytes, 5 * counted(w, algorithm, hosts)) << exchange::name(algorithm) << ' ' << w;
      }
    }
}

// `automatic` takes shared memory on one host. The payload counts, as in a run.
TEST(ExchangeBytes, InSharedMemoryCountThePayload) {
  const auto result = forecast({"strategy.name=bsp"}, Algorithm::automatic, kOneHost);
  for (strategies::WorkerId w = 0; w < kWorkers; ++w)
    EXPECT_EQ(result.workers[w].bytes, 5 * counted(w, Algorithm::asa, {0, 0, 0, 0}));
}

// A group averages after each step; before each step, and once more to learn that there is none, its leader broadcasts.
TEST(ExchangeBytes, OfABroadcastCountAtItsRootAlone) {
  const auto result =
      forecast({"strategy.name=mixed", "strategy.group_size=4", "strategy.inner=easgd", "strategy.tau=9"},
               Algorithm::automatic, kOneHost);
  const std::vector<std::uint32_t> hosts{0, 0, 0, 0};
  EXPECT_EQ(counted(0, Algorithm::asa, hosts, 0), 3 * kFloats * sizeof(float));
  for (strategies::WorkerId w = 0; w < kWorkers; ++w)
    EXPECT_EQ(result.workers[w].bytes, 5 * counted(w, Algorithm::asa, hosts) + 6 * counted(w, Algorithm::asa, hosts, 0))
        << w;
}

}  // namespace
}  // namespace troupe::sim
