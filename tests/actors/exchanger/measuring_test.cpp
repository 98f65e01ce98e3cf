#include "actors/exchanger/measuring.hpp"

#include <chrono>
#include <limits>

#include <gtest/gtest.h>

#include "actors/requests/deadlines.hpp"

namespace troupe::actors {
namespace {

constexpr core::Duration kIdle = kMeasureSilence + kMargin;

TEST(MeasureDeadline, IsTheTransferOverTheSlowestLinkAndTheLongestSilence) {
  // 2 algorithms, 1 + 5 rounds, 1024 + 7168 floats there and back for 3 members: 12 * 8192 * 8 * 3 bytes at 1024 bytes/s.
  const MeasureOrder order{
      .worker_sites = {0, 1, 2}, .site_hosts = {}, .floats = {1024, 7168}, .algorithms = {"ring", "asa"}, .rounds = 5};
  EXPECT_EQ(measure_deadline(order), kIdle + std::chrono::seconds(36 * 64));
}

TEST(MeasureDeadline, IsFiniteForEveryOrder) {
  const MeasureOrder order{.worker_sites = std::vector<std::uint32_t>(1000),
                           .site_hosts = {},
                           .floats = {std::numeric_limits<std::uint64_t>::max()},
                           .algorithms = {"ring"},
                           .rounds = std::numeric_limits<std::uint32_t>::max()};
  EXPECT_EQ(measure_deadline(order), kIdle + std::chrono::hours(30 * 24));
}

}  // namespace
}  // namespace troupe::actors
