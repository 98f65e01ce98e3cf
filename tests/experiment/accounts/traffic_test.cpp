#include "experiment/accounts/traffic.hpp"

#include <gtest/gtest.h>

#include "strategies/host/events.hpp"

namespace troupe::experiment {
namespace {

TEST(Traffic, RowsAreByPurposeAndMemberInOrder) {
  std::vector<Traffic> rows;
  count(rows, {Purpose::peer, 3, 10});
  count(rows, {Purpose::push, 1, 1});
  count(rows, {Purpose::peer, 0, 5});
  count(rows, {Purpose::push, 1, 2});
  EXPECT_EQ(rows, (std::vector<Traffic>{{Purpose::push, 1, 3}, {Purpose::peer, 0, 5}, {Purpose::peer, 3, 10}}));
  EXPECT_EQ(total_bytes(rows), 18U);
}

TEST(Traffic, EveryTransferHasItsPurpose) {
  using strategies::Transfer;
  EXPECT_EQ(name(purpose_of(Transfer::push)), "push");
  EXPECT_EQ(name(purpose_of(Transfer::pull)), "pull");
  EXPECT_EQ(name(purpose_of(Transfer::push_pull)), "exchange");
  EXPECT_EQ(name(kLastPurpose), "collective");
}

}  // namespace
}  // namespace troupe::experiment
