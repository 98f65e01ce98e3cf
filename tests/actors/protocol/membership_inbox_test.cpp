#include "actors/protocol/membership_inbox.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(MembershipInbox, NewsHoldInTheOrderOfTheirEpochsOnly) {
  MembershipInbox inbox;
  EXPECT_FALSE(inbox.begin(3));
  EXPECT_TRUE(inbox.take({4, {0}}));
  EXPECT_FALSE(inbox.take({4, {0}})) << "by another way";
  EXPECT_TRUE(inbox.take({7, {0, 2}}));
  EXPECT_FALSE(inbox.take({5, {0, 1}})) << "overtaken";
  EXPECT_FALSE(inbox.take({3, {0, 1, 2}}));
  EXPECT_TRUE(inbox.take({8, {0}}));
}

TEST(MembershipInbox, NewsBeforeTheBeginningAreDeliveredAtTheBeginning) {
  MembershipInbox inbox;
  EXPECT_FALSE(inbox.take({2, {0}}));
  EXPECT_FALSE(inbox.take({5, {0, 2}}));
  EXPECT_FALSE(inbox.take({3, {0, 1}}));
  const auto early = inbox.begin(0);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->epoch, 5U);
  EXPECT_EQ(early->workers, (std::vector<strategies::WorkerId>{0, 2}));
  EXPECT_FALSE(inbox.take({5, {0, 2}}));
  EXPECT_TRUE(inbox.take({6, {0}}));
}

/// The actor directory that a newcomer receives has a membership epoch: news up to that epoch are old.
TEST(MembershipInbox, KnownNewsAreDropped) {
  MembershipInbox inbox;
  EXPECT_FALSE(inbox.take({5, {0, 2}}));
  EXPECT_FALSE(inbox.begin(5));
  MembershipInbox other;
  EXPECT_FALSE(other.take({4, {0, 2}}));
  EXPECT_FALSE(other.begin(5));
  EXPECT_FALSE(other.take({5, {0, 2}}));
}

}  // namespace
}  // namespace troupe::actors
