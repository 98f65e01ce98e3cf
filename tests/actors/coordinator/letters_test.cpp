// What workers have written to each other is waited for before the model is looked at, and is a part of it.
#include <map>

#include <gtest/gtest.h>

#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// Two gossiping workers, with half of the model each, that have told the coordinator so at the beginning.
class CoordinatorLetters : public testing::Test {
 protected:
  CoordinatorLetters() : coordinator_({"strategy.name=gossip", "exchange.deadline_s=5", "data.train_samples=40"}) {
    coordinator_.begin();
    say(0, {.weight = 0.5, .sent = {}, .received = {}});
    say(1, {.weight = 0.5, .sent = {}, .received = {}});
    coordinator_.take_snapshots();
    auto first = coordinator_.order_to_write();
    coordinator_.write(first);
  }
  /// Answers the order that the worker was given, and returns what it is to wait for.
  std::vector<LetterCount> say(std::size_t worker, Letters letters) {
    std::vector<LetterCount> expected;
    EXPECT_TRUE(coordinator_.answered(*coordinator_.workers[worker],
                                      [&](const LettersOrder& order) {
                                        expected = order.expected;
                                        return letters;
                                      }))
        << "worker " << worker << " was not asked";
    return expected;
  }
  [[nodiscard]] bool asked(std::size_t worker) {
    return LoneCoordinator::heard(*coordinator_.workers[worker], [](const LettersOrder&) { return Letters{}; });
  }
  /// Worker 0 has written to worker 1.
  void say_written() {
    say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
    say(1, {.weight = 0.5, .sent = {}, .received = {}});
  }
  /// It has arrived.
  void say_arrived() {
    say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
    const auto expected = say(
        1, {.weight = 0.5, .sent = {}, .received = {{0, 1}}, .unread = {{0, 0.25}}, .slots = {strategies::staged(64)}});
    ASSERT_EQ(expected.size(), 1U);
    EXPECT_EQ(expected[0].peer, 0U);
    EXPECT_EQ(expected[0].letters, 1U);
  }
  void dismiss() {
    coordinator_.tell(Interrupt{});
    for (const auto& worker : coordinator_.workers)
      ASSERT_TRUE(coordinator_.answered(*worker, [](const Dismissal&) { return Dismissed{}; }));
  }
  /// Worker `worker` gives `value` for every float of the vector that it is asked for next, with `weight`.
  void give(std::size_t worker, strategies::Slot slot, float value, double weight) {
    EXPECT_TRUE(
        coordinator_.answered(*coordinator_.workers[worker], [&](const SnapshotOrder& order, const Lent& space) {
          EXPECT_EQ(order.slot, slot);
          EXPECT_EQ(order.journalled, slot == strategies::kParams) << "a replay has no letters";
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

TEST_F(CoordinatorLetters, TheModelAtTheEndHasWhatWasOnItsWay) {
  dismiss();
  say_written();
  EXPECT_EQ(coordinator_.take_snapshots(), 0) << "a quarter of the model is on its way";
  say_arrived();
  give(0, strategies::kParams, 1, 0.25);
  give(1, strategies::kParams, 3, 0.5);
  give(1, strategies::staged(64), 5, 0.25);
  float model = 0;
  EXPECT_TRUE(coordinator_.answered(coordinator_.recorder, [&](const CheckpointOrder&, const CheckpointCargo& cargo) {
    model = cargo.checkpoint->vectors.at("").front();
    return CheckpointWritten{.path = "there"};
  }));
  EXPECT_EQ(model, 0.25F * 1 + 0.5F * 3 + 0.25F * 5);
  EXPECT_EQ(end().error.code, core::Errc::interrupted);
}

TEST_F(CoordinatorLetters, ASegmentOfTheJournalBeginsWhenAllHaveArrived) {
  coordinator_.tell(JournalFull{});
  for (const auto& worker : coordinator_.workers)
    ASSERT_TRUE(coordinator_.answered(*worker, [](const SettleOrder&) { return Settled{}; }));
  say_written();
  const auto state = [](const StateOrder&) { return MemberState{}; };
  EXPECT_EQ(coordinator_.take_snapshots(), 0);
  EXPECT_FALSE(LoneCoordinator::heard(*coordinator_.workers[0], state));
  say_arrived();
  say_arrived();  // and once more for the model, which is what the workers have
  EXPECT_EQ(coordinator_.take_snapshots(), 3);
  EXPECT_TRUE(coordinator_.answered(*coordinator_.workers[0], state));
}

TEST_F(CoordinatorLetters, WhatAReaderThatIsLostHasNotReadIsNotWaitedFor) {
  dismiss();
  say_written();
  coordinator_.workers.pop_back();
  coordinator_.run();
  ASSERT_TRUE(asked(0)) << "of the time when there were two";
  coordinator_.run();
  say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
  EXPECT_EQ(coordinator_.take_snapshots(), 1);
}

TEST_F(CoordinatorLetters, SharesThatAreGoneEndTheRun) {
  dismiss();
  say_written();
  say(0, {.weight = 0.25, .sent = {{1, 1}}, .received = {}});
  say(1, {.weight = 0.5, .sent = {}, .received = {{0, 1}}});
  const auto end = this->end();
  EXPECT_EQ(end.error.code, core::Errc::internal);
  EXPECT_NE(end.error.message.find("add up to 0.75"), std::string::npos) << end.error.message;
}

TEST_F(CoordinatorLetters, AreWaitedForAsLongAsSomeArrive) {
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

TEST_F(CoordinatorLetters, AreNotWaitedForForEver) {
  dismiss();
  say_written();
  for (int k = 0; k < 3; ++k) {  // they answer, and nothing has come
    coordinator_.pass(2s);
    say_written();
  }
  const auto end = this->end();
  EXPECT_EQ(end.error.code, core::Errc::timeout);
  EXPECT_NE(end.error.message.find("worker 0 has written to worker 1"), std::string::npos) << end.error.message;
}

}  // namespace
}  // namespace troupe::actors
