#include "service/http/address_limits.hpp"

#include <gtest/gtest.h>

namespace troupe::service {
namespace {

using Admission = AddressLimits::Admission;
constexpr AddressLimits::Time kBegin{std::chrono::hours(1)};

Limits few() {
  Limits limits;
  limits.connections_per_address = 2;
  limits.requests_per_s = 10;
  limits.burst = 3;
  return limits;
}

TEST(AddressLimitsTest, EachAddressHasItsOwnConnections) {
  AddressLimits limits(few());
  EXPECT_EQ(limits.enter("a"), Admission::admitted);
  EXPECT_EQ(limits.enter("a"), Admission::admitted);
  EXPECT_EQ(limits.enter("a"), Admission::too_many);
  EXPECT_EQ(limits.enter("b"), Admission::admitted);
  EXPECT_EQ(limits.connections(), 3U);
  limits.leave("a");
  EXPECT_EQ(limits.enter("a"), Admission::admitted);
}

TEST(AddressLimitsTest, BurstIsSpentAndFillsAgain) {
  AddressLimits limits(few());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.allow("a", kBegin));
  EXPECT_FALSE(limits.allow("a", kBegin));
  EXPECT_TRUE(limits.allow("b", kBegin));
  // 10 per second: one after 100 ms, and after an hour no more than the burst.
  EXPECT_TRUE(limits.allow("a", kBegin + std::chrono::milliseconds(101)));
  EXPECT_FALSE(limits.allow("a", kBegin + std::chrono::milliseconds(102)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.allow("a", kBegin + std::chrono::hours(1)));
  EXPECT_FALSE(limits.allow("a", kBegin + std::chrono::hours(1)));
}

TEST(AddressLimitsTest, TimeThatRunsBackGivesNothing) {
  AddressLimits limits(few());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.allow("a", kBegin));
  EXPECT_FALSE(limits.allow("a", kBegin - std::chrono::minutes(1)));
}

}  // namespace
}  // namespace troupe::service
