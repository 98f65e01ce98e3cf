#include "transport/mpi/transfer_tags.hpp"

#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

constexpr int kLeast = (1 << 15) - 1;  // what MPI's standard demands
constexpr int kOfUcx = (1 << 23) - 1;  // Open MPI over UCX
constexpr int kMost = 2'147'483'647;   // Open MPI over its own transports

TEST(TransferTags, EveryMpiOfTheStandardHasEnough) {
  for (const int bound : {kLeast, kOfUcx, kMost}) EXPECT_TRUE(TransferTags::below(bound)) << bound;
  const auto few = TransferTags::below(kLeast - 1);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code, core::Errc::config);
}

TEST(TransferTags, TransfersUnderWayFromOneRankHaveDifferentTagsWithinTheBound) {
  auto tags = TransferTags::below(kLeast).value();
  std::set<int> taken;
  for (int i = 0; i < kLeast; ++i) {
    const int tag = tags.take(3);
    EXPECT_GE(tag, 0);
    EXPECT_LE(tag, kLeast);
    EXPECT_TRUE(taken.insert(tag).second) << tag;
  }
  EXPECT_THROW(static_cast<void>(tags.take(3)), std::length_error);
  EXPECT_NO_THROW(static_cast<void>(tags.take(4)));  // MPI tells ranks apart
}

TEST(TransferTags, ATagIsNotReusedWhileItsTransferIsUnderWay) {
  auto tags = TransferTags::below(kLeast).value();
  const int slow = tags.take(0);
  for (int i = 0; i < 3 * kLeast; ++i) {
    const int tag = tags.take(0);
    ASSERT_NE(tag, slow);
    tags.give_back(0, tag);
  }
  tags.give_back(0, slow);
  bool again = false;
  for (int i = 0; i < kLeast && !again; ++i) again = tags.take(0) == slow;
  EXPECT_TRUE(again);
}

}  // namespace
}  // namespace troupe::transport
