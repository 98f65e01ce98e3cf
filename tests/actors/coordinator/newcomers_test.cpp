// A coordinator that admits a newcomer: the session's step at which the newcomer begins.
#include <gtest/gtest.h>

#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

using Options = std::vector<std::string>;

/// Two workers. The second one is lost and comes back at the end of the first epoch.
class NewcomerToTheSecondPlace {
 public:
  /// `steps_before`: steps of earlier sessions, by rank.
  NewcomerToTheSecondPlace(Options options, std::vector<std::uint64_t> steps_before)
      : coordinator_(with_small_epochs(std::move(options))), rejoin_manager_(coordinator_.system()) {
    coordinator_.begin([&](CoordinatorSetup& setup) {
      setup.resumed = !steps_before.empty();
      setup.before.worker_steps = steps_before;
      for (const auto steps : steps_before) setup.before.steps += steps;
      setup.rejoin_manager = caf::actor_cast<RejoinManagerActor>(rejoin_manager_);
    });
    coordinator_.take_snapshots();
    if (auto first = coordinator_.order_to_write()) coordinator_.write(first);
  }

  /// The first worker takes all remaining batches and reports `passed` passed-over steps. Returns the step at which the newcomer is to
  /// begin.
  std::optional<strategies::Step> first_step(std::uint64_t passed = 0) {
    std::optional<strategies::Step> step;
    reach_admission(passed, [&](const AdmissionOrder& order) {
      step = order.first_step;
      return caf::result<Admission, SiteMembers, OpenedSite>{Admission{"not now"}, SiteMembers{}, OpenedSite{}};
    });
    return step;
  }
  /// The rejoin manager receives the order and does not answer it. Returns whether the order came.
  bool admission_begins() {
    return reach_admission(0, [&](const AdmissionOrder&) {
      return rejoin_manager_->make_response_promise<Admission, SiteMembers, OpenedSite>();
    });
  }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }  // of the session
  [[nodiscard]] LoneCoordinator& coordinator() { return coordinator_; }

 private:
  template <class RejoinManager>
  bool reach_admission(std::uint64_t passed, const RejoinManager& rejoin_manager) {
    coordinator_.workers[1].reset();
    coordinator_.run();
    EXPECT_TRUE(LoneCoordinator::heard(rejoin_manager_, [](const Vacancy& vacancy) { EXPECT_EQ(vacancy.worker, 1U); }));
    coordinator_.tell(Arrived{1});
    WorkerProgress progress{.worker = 0};
    coordinator_.tell(LeaseRequest{0, 100});
    progress.done = coordinator_.granted();
    progress.passed = passed;
    progress.steps = progress.done.size() - passed;
    rounds_ = progress.done.size();
    coordinator_.tell(progress);
    for (int k = 0; k < 10; ++k) {
      coordinator_.answered(*coordinator_.workers[0], [](const SettleOrder&) { return Settled{}; });
      coordinator_.answered(coordinator_.evaluator, [](const EvaluateOrder&, const BorrowedView&, const BorrowedView&) {
        return Evaluated{.test = {.samples = 1}};
      });
      take_snapshots();
      if (auto writing = coordinator_.order_to_write()) coordinator_.write(writing);
      if (LoneCoordinator::heard(rejoin_manager_, rejoin_manager)) return true;
    }
    return false;
  }
  static Options with_small_epochs(Options options) {
    for (const char* more : {"data.train_samples=240", "run.epochs=9"}) options.emplace_back(more);
    return options;
  }
  /// Answers the snapshot orders of the members that are not lost.
  void take_snapshots() {
    const auto take = [](const SnapshotOrder& order, const BorrowedView&) { return SnapshotTaken{.id = order.id}; };
    for (bool any = true; any;) {
      any = coordinator_.answered(*coordinator_.workers[0], take);
      for (const auto& server : coordinator_.servers) any = coordinator_.answered(*server, take) || any;
    }
  }

  LoneCoordinator coordinator_;
  caf::scoped_actor rejoin_manager_;
  std::uint64_t rounds_ = 0;
};

class InStep : public ::testing::TestWithParam<const char*> {};

TEST_P(InStep, NewcomerBeginsWhereTheOthersOfThisSessionStand) {
  for (const std::vector<std::uint64_t>& before : {std::vector<std::uint64_t>{}, {1000, 1000}, {70, 35}}) {
    NewcomerToTheSecondPlace place({std::string("strategy.name=") + GetParam()}, before);
    const auto first = place.first_step();
    ASSERT_TRUE(first);
    EXPECT_GT(place.rounds(), 0U);
    EXPECT_EQ(*first, place.rounds());
  }
}

INSTANTIATE_TEST_SUITE_P(, InStep, ::testing::Values("ssp", "sync_easgd", "local_sgd", "diloco"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Newcomers, PassedOverStepsCount) {
  NewcomerToTheSecondPlace place({"strategy.name=bsp", "strategy.backup=1"}, {1000, 900});
  const auto first = place.first_step(3);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, place.rounds());
}

/// A node may compile for minutes: an interrupted run does not wait for it.
TEST(Newcomers, AStoppingRunDoesNotWaitForANewcomer) {
  NewcomerToTheSecondPlace place({"strategy.name=easgd"}, {});
  ASSERT_TRUE(place.admission_begins());
  auto& coordinator = place.coordinator();
  auto& worker = *coordinator.workers[0];
  const auto dismissed = [](const Dismissal&) { return Dismissed{}; };
  EXPECT_FALSE(coordinator.answered(worker, dismissed));
  coordinator.tell(Interrupt{});
  EXPECT_TRUE(coordinator.answered(worker, dismissed));
}

}  // namespace
}  // namespace troupe::actors
