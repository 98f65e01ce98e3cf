// A new journal segment in the middle of a run, and what may happen while members report their states.
#include <gtest/gtest.h>

#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

class Rotation : public ::testing::Test {
 protected:
  explicit Rotation(const std::string& checkpoint_every = "never")
      : coordinator_({"strategy.name=easgd", "cluster.workers=1", "run.epochs=3", "data.train_samples=40",
                      "run.checkpoint_every=" + checkpoint_every}) {}

  void begin(std::vector<std::uint32_t> worker_sites = {}) {
    coordinator_.worker_sites = std::move(worker_sites);
    coordinator_.begin_training();
  }

  /// The worker, which is asked first, answers that it has settled.
  bool settle() {
    return coordinator_.answered(*coordinator_.workers[0], [](const SettleOrder&) { return Settled{}; });
  }
  /// All members report their states, up to the order for the new segment.
  void say_what_they_are() {
    const auto state = [](const StateOrder&) { return MemberState{}; };
    EXPECT_TRUE(coordinator_.answered(*coordinator_.workers[0], state));
    EXPECT_TRUE(coordinator_.answered(*coordinator_.servers[0], state));
    coordinator_.take_snapshots();
  }
  /// A member at another site is asked for its state; its earlier records precede the answer.
  bool hand_in() {
    return coordinator_.answered(*coordinator_.workers[0], [](const StateOrder&) { return MemberState{}; });
  }
  bool begin_segment() {
    return coordinator_.answered(coordinator_.recorder,
                                 [](const RotateOrder&, const CheckpointPayload&) { return Rotated{}; });
  }
  void evaluate() {
    coordinator_.take_snapshots();
    EXPECT_TRUE(coordinator_.answered(coordinator_.evaluator,
                                      [](const EvaluateOrder&, const BorrowedView&, const BorrowedView&) {
                                        return Evaluated{.test = {.samples = 1}};
                                      }));
    coordinator_.take_snapshots();
  }

  void train_an_epoch() {
    for (int batch = 0; batch < 2; ++batch) coordinator_.train(coordinator_.ask_for_one());
  }

  // Two batches per epoch.
  LoneCoordinator coordinator_;
};

class RotationBesideCheckpoints : public Rotation {
 protected:
  RotationBesideCheckpoints() : Rotation("1 epoch") {}
};

// A newcomer needs a new segment, and meanwhile the old segment reports that it is full.
TEST_F(Rotation, SegmentThatFillsUpDuringARotationStartsNoSecondOne) {
  begin();
  coordinator_.train(coordinator_.ask_for_one());
  coordinator_.tell(JournalFull{});
  coordinator_.tell(JournalFull{});
  ASSERT_TRUE(settle());
  coordinator_.tell(JournalFull{});
  say_what_they_are();
  ASSERT_TRUE(begin_segment());
  const auto leases = coordinator_.ask_for_one();
  ASSERT_EQ(leases.size(), 1U) << "training stands still";
  coordinator_.train(leases);
  evaluate();
  EXPECT_FALSE(settle());
  EXPECT_EQ(coordinator_.ask_for_one().size(), 1U) << "the next epoch does not begin";
}

// A snapshot may arrive before its journal record: they travel over different connections.
TEST_F(Rotation, ASegmentEndsWhenTheRecordsOfMembersElsewhereAreThere) {
  begin({1});
  coordinator_.train(coordinator_.ask_for_one());
  coordinator_.tell(JournalFull{});
  ASSERT_TRUE(settle());
  say_what_they_are();
  EXPECT_FALSE(begin_segment());
  ASSERT_TRUE(hand_in());
  EXPECT_TRUE(begin_segment());
}

TEST_F(Rotation, TheJournalEndsWhenTheRecordsOfMembersElsewhereAreThere) {
  begin({1});
  caf::scoped_actor self(coordinator_.system());
  self->send(coordinator_.actor(), AwaitEnd{});
  coordinator_.train(coordinator_.ask_for_one());
  coordinator_.tell(Interrupt{});
  ASSERT_TRUE(coordinator_.answered(*coordinator_.workers[0], [](const Dismissal&) { return Dismissed{}; }));
  coordinator_.take_snapshots();
  auto last = coordinator_.order_to_write();
  coordinator_.write(last);
  EXPECT_FALSE(self->has_next_message()) << "it has ended";
  ASSERT_TRUE(hand_in());
  EXPECT_TRUE(LoneCoordinator::heard(
      self, [](const RunEnd& reached) { EXPECT_EQ(reached.error.code, core::Errc::interrupted); }));
}

TEST_F(Rotation, StopDuringARotationEndsTheRun) {
  begin();
  coordinator_.train(coordinator_.ask_for_one());
  coordinator_.tell(JournalFull{});
  ASSERT_TRUE(settle());
  coordinator_.tell(Interrupt{});
  say_what_they_are();
  ASSERT_TRUE(begin_segment());
  EXPECT_TRUE(coordinator_.ask_for_one().empty());
  EXPECT_TRUE(coordinator_.answered(*coordinator_.workers[0], [](const Dismissal&) { return Dismissed{}; }));
}

// A checkpoint falls due while the one before is still written. That write ends after the rotation has begun.
TEST_F(RotationBesideCheckpoints, OwedCheckpointIsTakenBeforeTrainingResumes) {
  begin();
  train_an_epoch();
  evaluate();
  auto first = coordinator_.order_to_write();
  ASSERT_TRUE(first);
  train_an_epoch();
  coordinator_.tell(JournalFull{});
  evaluate();
  EXPECT_FALSE(coordinator_.order_to_write()) << "one at a time";
  ASSERT_TRUE(settle());
  coordinator_.write(first);
  say_what_they_are();
  ASSERT_TRUE(begin_segment());
  EXPECT_TRUE(coordinator_.ask_for_one().empty());
  coordinator_.take_snapshots();
  auto owed = coordinator_.order_to_write();
  ASSERT_TRUE(owed);
  EXPECT_EQ(coordinator_.granted().size(), 1U) << "training does not wait for the disk";
  coordinator_.write(owed);
}

}  // namespace
}  // namespace troupe::actors
