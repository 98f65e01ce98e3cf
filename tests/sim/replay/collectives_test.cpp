// What a member of a replay waits for: no more than it waited for in the run.
#include "sim/replay/collectives.hpp"

#include <gtest/gtest.h>

namespace troupe::replay {
namespace {

class ReplayCollectives : public testing::Test {
 protected:
  static Collectives::Task broadcast_from(strategies::WorkerId root) {
    return {.group = {0, 1, 2}, .broadcast = true, .root = root};
  }

  experiment::ExchangePlan plan_;
  core::HostAllocator memory_;
  Wire wire_{plan_, nullptr, core::reference_kernels(), memory_};
  Collectives collectives_{wire_, nullptr, core::reference_kernels()};
  std::vector<float> zero_{1, 2}, one_{3, 4}, two_{5, 6};
};

TEST_F(ReplayCollectives, ABroadcastWaitsForTheRootAlone) {
  collectives_.join(0, 7, 3, broadcast_from(1), zero_);
  EXPECT_FALSE(collectives_.take_done(0, 3));
  collectives_.join(1, 7, 3, broadcast_from(1), one_);
  EXPECT_TRUE(collectives_.take_done(0, 3)) << "worker 2 may come after what 0 does next";
  EXPECT_TRUE(collectives_.take_done(1, 3));
  EXPECT_EQ(zero_, (std::vector<float>{3, 4}));
  one_ = {9, 9};  // the root continues
  collectives_.join(2, 7, 3, broadcast_from(1), two_);
  EXPECT_TRUE(collectives_.take_done(2, 3));
  EXPECT_EQ(two_, (std::vector<float>{3, 4})) << "what the root had when it joined";
}

TEST_F(ReplayCollectives, SecondBroadcastOfANumberIsNotTheFirst) {
  for (int round = 0; round < 2; ++round) {
    one_ = {static_cast<float>(round), 8};
    collectives_.join(1, 7, 3, broadcast_from(1), one_);
    collectives_.join(0, 7, 3, broadcast_from(1), zero_);
    collectives_.join(2, 7, 3, broadcast_from(1), two_);
    EXPECT_EQ(two_, one_);
    for (const strategies::WorkerId worker : {0U, 1U, 2U}) EXPECT_TRUE(collectives_.take_done(worker, 3));
  }
}

TEST_F(ReplayCollectives, AReductionWaitsForAll) {
  const Collectives::Task sum{.group = {0, 1, 2}, .op = strategies::ReduceOp::sum};
  collectives_.join(0, 7, 3, sum, zero_);
  collectives_.join(2, 7, 3, sum, two_);
  EXPECT_FALSE(collectives_.take_done(0, 3));
  collectives_.join(1, 7, 3, sum, one_);
  for (const strategies::WorkerId worker : {0U, 1U, 2U}) EXPECT_TRUE(collectives_.take_done(worker, 3));
  EXPECT_EQ(zero_, (std::vector<float>{9, 12}));
  EXPECT_EQ(two_, zero_);
}

}  // namespace
}  // namespace troupe::replay
