// The coordinator waits for the peer messages under way before it takes the model. Unread ones are part of the model.
#include <map>

#include <gtest/gtest.h>

#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// Two gossip workers with weight 1/2 each, which they have reported to the coordinator at the start.
class CoordinatorPeerMessages : public ::testing::Test {
 protected:
  CoordinatorPeerMessages() : coordinator_({"strategy.name=gossip", "exchange.deadline_s=5", "data.train_samples=40"}) {
    coordinator_.begin();
    say(0, {.weight = 0.5, .sent = {}, .received = {}});
    say(1, {.weight = 0.5, .sent = {}, .received = {}});
    coordinator_.take_snapshots();
    auto first = coordinator_.order_to_write();
    coordinator_.write(first);
  }
  /// Answers the order that the worker has received. Returns the messages that the worker is to wait for.
  std::vector<PeerMessageCount> say(std::size_t worker, PeerMessageCounts peer_messages) {
    std::vector<PeerMessageCount> expected;
    EXPECT_TRUE(coordinator_.answered(*coordinator_.workers[worker],
                                      [&](const PeerMessageCountsOrder& order) {
                                        expected = order.expected;
                                        return peer_messages;
                                      }))
        << "worker " << worker << " was not asked";
    return expected;
  }
  [[nodiscard]] bool asked(std::size_t worker) {
    return LoneCoordinator::heard(*coordinator_.workers[worker],
                                  [](const PeerMessageCountsOrder&) { return PeerMessageCounts{}; });
  }
  /// Both report: worker 0 has sent worker 1 a peer message.
  void say_written() {
    say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
    say(1, {.weight = 0.5, .sent = {}, .received = {}});
  }
  /// Both report: the message has arrived.
  void say_arrived() {
    say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
    const auto expected = say(
        1, {.weight = 0.5, .sent = {}, .received = {{0, 1}}, .unread = {{0, 0.25}}, .slots = {strategies::staged(64)}});
    ASSERT_EQ(expected.size(), 1U);
    EXPECT_EQ(expected[0].peer, 0U);
    EXPECT_EQ(expected[0].peer_messages, 1U);
  }
  void dismiss() {
    coordinator_.tell(Interrupt{});
    for (const auto& worker : coordinator_.workers)
      ASSERT_TRUE(coordinator_.answered(*worker, [](const Dismissal&) { return Dismissed{}; }));
  }
  /// Answers the next snapshot order of worker `worker`: every float of the vector is `value`, its weight is `weight`.
  void give(std::size_t worker, strategies::Slot slot, float value, double weight) {
    EXPECT_TRUE(coordinator_.answered(
        *coordinator_.workers[worker], [&](const SnapshotOrder& order, const BorrowedView& space) {
          EXPECT_EQ(order.slot, slot);
          EXPECT_EQ(order.journalled, slot == strategies::kParams) << "a replay has no peer messages";
          std::ranges::fill(space.data, value);
          return SnapshotTaken{.id = order.id, .weight = weight};
        }));
  }
  RunEnd end() {
    caf::scoped_actor self(coordinator_.system());
    self->send(coordinator_.actor(), AwaitEnd{});
    coordinator_.run();
    RunEnd reached;
    EXPECT_TRUE(LoneCoordinator::heard(self, [&](const RunEnd& end) { reached = end; })) << "it has not ended";
    return reached;
  }

  LoneCoordinator coordinator_;
};

TEST_F(CoordinatorPeerMessages, FinalModelContainsMessagesThatWereOnTheirWay) {
  dismiss();
  say_written();
  EXPECT_EQ(coordinator_.take_snapshots(), 0) << "a quarter of the model is on its way";
  say_arrived();
  give(0, strategies::kParams, 1, 0.25);
  give(1, strategies::kParams, 3, 0.5);
  give(1, strategies::staged(64), 5, 0.25);
  float model = 0;
  EXPECT_TRUE(
      coordinator_.answered(coordinator_.recorder, [&](const CheckpointOrder&, const CheckpointPayload& payload) {
        model = payload.checkpoint->vectors.at("")->front();
        return CheckpointWritten{.path = "there"};
      }));
  EXPECT_EQ(model, 0.25F * 1 + 0.5F * 3 + 0.25F * 5);
  EXPECT_EQ(end().error.code, core::Errc::interrupted);
}

TEST_F(CoordinatorPeerMessages, SegmentBeginsWhenAllMessagesHaveArrived) {
  coordinator_.tell(JournalFull{});
  for (const auto& worker : coordinator_.workers)
    ASSERT_TRUE(coordinator_.answered(*worker, [](const SettleOrder&) { return Settled{}; }));
  say_written();
  const auto state = [](const StateOrder&) { return MemberState{}; };
  EXPECT_EQ(coordinator_.take_snapshots(), 0);
  EXPECT_FALSE(LoneCoordinator::heard(*coordinator_.workers[0], state));
  say_arrived();
  EXPECT_EQ(coordinator_.take_snapshots(), 3);
  EXPECT_TRUE(coordinator_.answered(*coordinator_.workers[0], state));
}

TEST_F(CoordinatorPeerMessages, MessagesToALostReaderAreNotWaitedFor) {
  dismiss();
  say_written();
  coordinator_.workers.pop_back();
  coordinator_.run();
  ASSERT_TRUE(asked(0)) << "of the time when there were two";
  coordinator_.run();
  say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
  EXPECT_EQ(coordinator_.take_snapshots(), 1);
}

TEST_F(CoordinatorPeerMessages, MissingSharesEndTheRun) {
  dismiss();
  say_written();
  say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
  say(1, {.weight = 0.5, .sent = {}, .received = {{0, 1}}});
  const auto end = this->end();
  EXPECT_EQ(end.error.code, core::Errc::internal);
  EXPECT_NE(end.error.message.find("add up to 0.75"), std::string::npos) << end.error.message;
}

TEST_F(CoordinatorPeerMessages, AreWaitedForAsLongAsSomeArrive) {
  dismiss();
  say(0, {.weight = 0.125, .sent = {{1, 2}}, .received = {}});
  say(1, {.weight = 0.5, .sent = {}, .received = {}});
  coordinator_.pass(4s);
  say(0, {.weight = 0.125, .sent = {{1, 2}}, .received = {}});
  say(1, {.weight = 0.5, .sent = {}, .received = {{0, 1}}});
  coordinator_.pass(4s);
  say(0, {.weight = 0.125, .sent = {{1, 2}}, .received = {}});
  say(1, {.weight = 0.5, .sent = {}, .received = {{0, 1}}});
  ASSERT_TRUE(asked(0)) << "something came less than five seconds ago";
  coordinator_.run();
}

TEST_F(CoordinatorPeerMessages, AreNotWaitedForForEver) {
  dismiss();
  say_written();
  for (int k = 0; k < 3; ++k) {  // both answer, and the message has not arrived
    coordinator_.pass(2s);
    say_written();
  }
  const auto end = this->end();
  EXPECT_EQ(end.error.code, core::Errc::timeout);
  EXPECT_NE(end.error.message.find("a peer message from worker 0 to worker 1"), std::string::npos) << end.error.message;
}

}  // namespace
}  // namespace troupe::actors
