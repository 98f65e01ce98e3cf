// The ledger reports whether all peer messages have arrived and whether any weight is missing. The coordinator decides by it.
#include "actors/coordinator/peer_message_ledger.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using Pair = std::pair<strategies::WorkerId, strategies::WorkerId>;

/// Three workers. Each has weight 1/3, rounded to a whole multiple of 2⁻⁵².
class LedgerOfThree : public ::testing::Test {
 protected:
  LedgerOfThree() {
    for (strategies::WorkerId w = 0; w < 3; ++w) ledger_.heard(w, {.weight = kThird, .sent = {}, .received = {}});
    EXPECT_TRUE(ledger_.balance());
  }
  static constexpr double kThird = 1501199875790165.0 / (1ULL << 52);
  static constexpr double kHalf = 750599937895082.0 / (1ULL << 52);  // kThird is odd: its other half is one unit more

  /// Worker 0 has sent worker 1 half of its weight.
  void write() { ledger_.heard(0, {.weight = kThird - kHalf, .sent = {{1, 1}}, .received = {}}); }
  void arrive() { ledger_.heard(1, {.weight = kThird, .sent = {}, .received = {{0, 1}}, .unread = {{0, kHalf}}}); }

  PeerMessageLedger ledger_;
};

TEST_F(LedgerOfThree, SentMessageIsWaitedForUntilItsReaderHasIt) {
  EXPECT_FALSE(ledger_.under_way());
  write();
  EXPECT_EQ(ledger_.under_way(), (Pair{0, 1}));
  const auto expected = ledger_.expected_by(1);
  ASSERT_EQ(expected.size(), 1U);
  EXPECT_EQ(expected[0].peer, 0U);
  EXPECT_EQ(expected[0].peer_messages, 1U);
  EXPECT_TRUE(ledger_.expected_by(2).empty());
  arrive();
  EXPECT_FALSE(ledger_.under_way());
  EXPECT_EQ(ledger_.arrived(), 1U);
  EXPECT_TRUE(ledger_.balance());
}

TEST_F(LedgerOfThree, MissingOrExcessShareIsAnError) {
  write();
  ledger_.heard(1, {.weight = kThird, .sent = {}, .received = {{0, 1}}});  // neither mixed in nor unread
  const auto balance = ledger_.balance();
  ASSERT_FALSE(balance);
  EXPECT_EQ(balance.error().code, core::Errc::internal);
  arrive();
  EXPECT_FALSE(ledger_.balance()) << "what was gone is there again";
  ledger_.heard(2, {.weight = kThird + 1.0 / (1ULL << 52), .sent = {}, .received = {}});
  EXPECT_FALSE(ledger_.balance()) << "one unit in the last place";
}

TEST_F(LedgerOfThree, LostMembersShareMayBeMissingOnce) {
  write();
  ledger_.lost(1);
  EXPECT_FALSE(ledger_.under_way()) << "nobody is left who could have it";
  EXPECT_TRUE(ledger_.balance());
  ledger_.heard(0, {.weight = kHalf / 2, .sent = {{1, 1}}, .received = {}});
  EXPECT_FALSE(ledger_.balance()) << "nobody has been lost since";
}

TEST_F(LedgerOfThree, SharesThatGrowAfterALossAreAnError) {
  ledger_.lost(1);
  ledger_.heard(0, {.weight = 3 * kThird, .sent = {}, .received = {}});
  EXPECT_FALSE(ledger_.balance());
}

TEST_F(LedgerOfThree, MessagesBetweenDisconnectedMembersAreNotWaitedFor) {
  write();
  ledger_.disconnected(1, 0);
  EXPECT_FALSE(ledger_.under_way());
  EXPECT_TRUE(ledger_.expected_by(1).empty());
  EXPECT_TRUE(ledger_.balance());
  ledger_.heard(2, {.weight = kThird / 2, .sent = {{0, 1}}, .received = {}});
  EXPECT_EQ(ledger_.under_way(), (Pair{2, 0})) << "others reach each other";
}

TEST(PeerMessageLedger, FirstSumIsOneUpToTheRoundingOfShares) {
  PeerMessageLedger few;
  few.heard(0, {.weight = 0.5, .sent = {}, .received = {}});
  EXPECT_FALSE(few.balance());
  PeerMessageLedger absent;  // with a worker that was not connected when the run began
  absent.heard(0, {.weight = 0.5, .sent = {}, .received = {}});
  absent.lost(1);
  EXPECT_TRUE(absent.balance());
}

}  // namespace
}  // namespace troupe::actors
