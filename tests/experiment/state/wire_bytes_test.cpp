#include "experiment/state/wire_bytes.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

using exchange::Algorithm;

ExchangePlan over_processes(Algorithm algorithm) {
  return {
      .endpoint = "shm", .worker_sites = {0, 1, 2}, .site_hosts = {0, 0, 0}, .reductions = {{.algorithm = algorithm}}};
}

std::uint64_t bytes_of(strategies::WorkerId self, const ExchangePlan& plan, std::optional<strategies::WorkerId> root) {
  return WireBytes(self, plan, nullptr).collective({0, 1, 2}, root, strategies::Rounding::both, {}, 1000);
}

// Members that map each other's memory send addresses only. The payload counts that would travel: the same as in one process.
TEST(WireBytes, ReductionsInMappedMemoryCountAsInOneProcess) {
  for (strategies::WorkerId self = 0; self < 3; ++self)
    for (const std::optional<strategies::WorkerId> root : {std::optional<strategies::WorkerId>(), {1}}) {
      const auto alone = bytes_of(self, ExchangePlan{}, root);
      EXPECT_EQ(bytes_of(self, over_processes(Algorithm::shm), root), alone);
      EXPECT_EQ(bytes_of(self, over_processes(Algorithm::asa), root), alone);
    }
  EXPECT_EQ(bytes_of(1, ExchangePlan{}, 1), 2 * 1000 * sizeof(float));
}

TEST(WireBytes, ReductionsOfHalvesCountTwoBytesPerNumber) {
  for (strategies::WorkerId self = 0; self < 3; ++self)
    EXPECT_EQ(2 * bytes_of(self, over_processes(Algorithm::asa16), {}),
              bytes_of(self, over_processes(Algorithm::asa), {}));
}

}  // namespace
}  // namespace troupe::experiment
