#include "data/order/lease.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/data/order/lease_schedulers.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using testing::HasSubstr;

TEST(LeaseSchedulerTest, RefusesOptionsThatCannotWork) {
  const std::vector<std::pair<LeaseOptions, std::string>> cases = {
      {on_demand_of(0, {4}), "the data set is empty"},
      {on_demand_of(10, {}), "no workers"},
      {on_demand_of(10, {4, 0}), "data.batch of worker 1 is 0"},
      {equal_of(10, {4, 2}),
       "data.batch of worker 1 is 2 and of worker 0 4: a strategy whose workers go in step needs equal batches"},
      {equal_of(7, {4, 4}, 1, true), "drop_tail leaves nothing: 7 samples do not fill one batch of 8"},
      {on_demand_of(7, {4, 8}, 1, true), "drop_tail leaves nothing"},
  };
  for (const auto& [options, message] : cases) {
    const auto leases = LeaseScheduler::create(options);
    ASSERT_FALSE(leases.has_value()) << message;
    EXPECT_EQ(leases.error().code, Errc::config);
    EXPECT_THAT(leases.error().message, HasSubstr(message));
  }
  EXPECT_TRUE(LeaseScheduler::create(equal_of(8, {4, 4}, 1, true)).has_value());
  EXPECT_TRUE(LeaseScheduler::create(on_demand_of(3, {4})).has_value());  // wraps around within one batch
}

TEST(LeaseSchedulerTest, OnDemandGrantsTheNextBatchToTheRequester) {
  auto leases = scheduler_of(on_demand_of(10, {4, 2}));
  EXPECT_EQ(leases.grant(0), (Lease{0, 0, 0, 4, 0.0}));
  EXPECT_EQ(leases.grant(1), (Lease{1, 0, 4, 2, 0.4}));
  EXPECT_EQ(leases.grant(1), (Lease{2, 0, 6, 2, 0.6}));
  EXPECT_EQ(leases.grant(0), (Lease{3, 0, 8, 4, 0.8}));  // 8, 9, then 0 and 1 again
  EXPECT_EQ(leases.grant(0), std::nullopt);
  EXPECT_EQ(leases.grant(1), std::nullopt);
}

TEST(LeaseSchedulerTest, AnEpochIsDoneWhenItsLeasesAre) {
  auto leases = scheduler_of(on_demand_of(8, {4}, 2));
  const auto first = leases.grant(0), second = leases.grant(0);
  EXPECT_FALSE(leases.epoch_done());
  EXPECT_THROW(leases.next_epoch(), std::logic_error);
  leases.done(0, second->index);
  EXPECT_DOUBLE_EQ(leases.epoch_position(), 0.5);
  EXPECT_FALSE(leases.epoch_done());
  leases.done(0, first->index);
  EXPECT_TRUE(leases.epoch_done());
  EXPECT_FALSE(leases.finished());
  EXPECT_DOUBLE_EQ(leases.epoch_position(), 1.0);
  EXPECT_EQ(leases.done_count(), 2u);

  leases.next_epoch();
  EXPECT_EQ(leases.epoch(), 1u);
  EXPECT_EQ(leases.grant(0), (Lease{2, 1, 0, 4, 1.0}));
  leases.done(0, 2);
  leases.done(0, leases.grant(0)->index);
  EXPECT_TRUE(leases.finished());
  leases.next_epoch();  // nothing left to begin
  EXPECT_TRUE(leases.finished());
  EXPECT_EQ(leases.grant(0), std::nullopt);
  EXPECT_DOUBLE_EQ(leases.epoch_position(), 2.0);
}

TEST(LeaseSchedulerTest, TheTailWrapsAroundOrIsDropped) {
  auto wrapped = scheduler_of(on_demand_of(10, {4}));
  (void)wrapped.grant(0), (void)wrapped.grant(0);
  EXPECT_EQ(positions(*wrapped.grant(0), 10), (std::vector<std::int64_t>{8, 9, 0, 1}));

  auto dropped = scheduler_of(on_demand_of(10, {4}, 1, true));
  dropped.done(0, dropped.grant(0)->index);
  EXPECT_FALSE(dropped.epoch_done());
  dropped.done(0, dropped.grant(0)->index);
  EXPECT_TRUE(dropped.epoch_done());  // without a request for a third
  EXPECT_EQ(dropped.grant(0), std::nullopt);
  EXPECT_DOUBLE_EQ(dropped.epoch_position(), 1.0);
}

TEST(LeaseSchedulerTest, WithUnequalBatchesTheFirstWorkerThatCannotFillTheTailDropsIt) {
  auto leases = scheduler_of(on_demand_of(10, {6, 2}, 1, true));
  (void)leases.grant(0);
  EXPECT_EQ(leases.grant(1)->first, 6);  // 8 and 9 are left: enough for worker 1 only
  EXPECT_EQ(leases.grant(0), std::nullopt);
  EXPECT_EQ(leases.grant(1), std::nullopt);
}

TEST(LeaseSchedulerTest, ATailThatOnlyALostWorkerCouldFillIsDropped) {
  auto leases = scheduler_of(on_demand_of(10, {6, 2}, 1, true));
  const auto lease = leases.grant(0);  // [6, 10) is left: two batches of worker 1, none of worker 0
  leases.lost(1);
  EXPECT_FALSE(leases.epoch_done());
  leases.done(0, lease->index);
  EXPECT_TRUE(leases.epoch_done());
}

TEST(LeaseSchedulerTest, LeasesOfALostWorkerReturnOldestFirst) {
  auto leases = scheduler_of(on_demand_of(20, {4, 4}));
  const auto lost_first = leases.grant(0), kept = leases.grant(1), lost_second = leases.grant(0);
  EXPECT_EQ(leases.lost(0), (std::vector<LeftLease>{{0, 0, 0, 4}, {2, 0, 8, 4}}));
  EXPECT_TRUE(leases.lost(0).empty());
  EXPECT_EQ(leases.grant(0), std::nullopt);
  const auto again = leases.grant(1);
  EXPECT_EQ(again->first, lost_first->first);
  EXPECT_GT(again->index, lost_second->index);  // a new lease
  EXPECT_DOUBLE_EQ(again->epoch_position, lost_first->epoch_position);
  EXPECT_EQ(leases.grant(1)->first, lost_second->first);
  EXPECT_EQ(leases.grant(1)->first, 12);
  leases.done(0, lost_first->index);  // too late
  EXPECT_EQ(leases.done_count(), 0u);
  leases.done(1, kept->index);
  EXPECT_EQ(leases.done_count(), 1u);
  leases.joined(0);
  EXPECT_EQ(leases.grant(0)->first, 16);
}

TEST(LeaseSchedulerTest, OnlyTheHolderFinishesALease) {
  auto leases = scheduler_of(on_demand_of(8, {4, 4}));
  const auto lease = leases.grant(0);
  leases.done(1, lease->index);
  EXPECT_EQ(leases.done_count(), 0u);
  leases.done(0, lease->index);
  leases.done(0, lease->index);  // reported twice, counted once
  EXPECT_EQ(leases.done_count(), 1u);
}

TEST(LeaseSchedulerTest, ReturnedLeasesAreCutToTheTakersBatch) {
  auto leases = scheduler_of(on_demand_of(16, {8, 4}));
  (void)leases.grant(0);
  leases.lost(0);
  EXPECT_EQ(leases.grant(1), (Lease{1, 0, 0, 4, 0.0}));
  EXPECT_EQ(leases.grant(1), (Lease{2, 0, 4, 4, 0.25}));
  EXPECT_EQ(leases.grant(1)->first, 8);

  auto other = scheduler_of(on_demand_of(16, {8, 4}));
  (void)other.grant(1), (void)other.grant(0);  // [0, 4) and [4, 12)
  other.lost(1);
  EXPECT_EQ(other.grant(0), (Lease{2, 0, 0, 8, 0.0}));  // overlaps [4, 8), which worker 0 already holds
  EXPECT_EQ(other.grant(0)->first, 12);
}

TEST(LeaseSchedulerTest, PauseStopsGrantsUntilResume) {
  auto leases = scheduler_of(on_demand_of(12, {4}));
  const auto lease = leases.grant(0);
  leases.pause();
  EXPECT_EQ(leases.grant(0), std::nullopt);
  EXPECT_FALSE(leases.quiet());
  EXPECT_THROW((void)leases.state(), std::logic_error);
  leases.done(0, lease->index);
  EXPECT_TRUE(leases.quiet());
  EXPECT_FALSE(leases.epoch_done());
  leases.resume();
  EXPECT_FALSE(leases.quiet());
  EXPECT_EQ(leases.grant(0)->first, 4);
}

TEST(LeaseSchedulerTest, CountsLeasesPerEpoch) {
  EXPECT_EQ(scheduler_of(on_demand_of(10, {4, 4})).leases_per_epoch(2), 3u);
  EXPECT_EQ(scheduler_of(on_demand_of(10, {4, 4}, 1, true)).leases_per_epoch(1), 2u);
  EXPECT_EQ(scheduler_of(equal_of(10, {2, 2})).leases_per_epoch(2), 6u);  // three rounds of two
  EXPECT_EQ(scheduler_of(equal_of(10, {2, 2}, 1, true)).leases_per_epoch(2), 4u);
  EXPECT_EQ(scheduler_of(equal_of(10, {2, 2})).leases_per_epoch(1), 5u);
  EXPECT_EQ(scheduler_of(on_demand_of(60, {4, 2})).leases_per_epoch(2), 20u);  // 3 samples per lease on average
}

TEST(LeaseSchedulerTest, StateOfAnotherRunIsRefused) {
  auto leases = scheduler_of(on_demand_of(12, {4}));
  leases.pause();
  const std::string state = leases.state();
  auto other_size = scheduler_of(on_demand_of(13, {4}));
  auto other_sharing = scheduler_of(equal_of(12, {4}));
  for (auto* other : {&other_size, &other_sharing}) {
    const auto restored = other->restore(state);
    ASSERT_FALSE(restored.has_value());
    EXPECT_EQ(restored.error().code, Errc::config);
  }
  auto more_workers = scheduler_of(on_demand_of(12, {2, 3, 7}));
  EXPECT_TRUE(more_workers.restore(state).has_value());

  auto equal = scheduler_of(equal_of(12, {4}));
  equal.pause();
  auto other_batch = scheduler_of(equal_of(12, {3}));
  const auto refused = other_batch.restore(equal.state());
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("data.batch = 4 and this run has 3"));
}

/// Leases granted from now on have the factor; so have those of a resumed run.
TEST(LeaseSchedulerTest, TheLearningRateFactorIsInLeasesAndInTheState) {
  auto leases = scheduler_of(on_demand_of(12, {4}));
  EXPECT_EQ(leases.grant(0)->lr_factor, 1);
  leases.done(0, 0);
  leases.set_lr_factor(0.25);
  EXPECT_EQ(leases.grant(0)->lr_factor, 0.25);
  leases.done(0, 1);
  leases.pause();
  auto resumed = scheduler_of(on_demand_of(12, {4}));
  ASSERT_TRUE(resumed.restore(leases.state()));
  EXPECT_EQ(resumed.grant(0)->lr_factor, 0.25);
  auto damaged = nlohmann::json::parse(leases.state());
  for (const double wrong : {0.0, -1.0}) {
    damaged["lr_factor"] = wrong;
    EXPECT_EQ(resumed.restore(damaged.dump()).error().code, Errc::corrupt);
  }
  damaged.erase("lr_factor");  // of an older program
  EXPECT_TRUE(resumed.restore(damaged.dump()));
}

TEST(LeaseSchedulerTest, DamagedStateIsCorruptAndChangesNothing) {
  auto leases = scheduler_of(on_demand_of(12, {4}));
  auto reference = nlohmann::json::parse([] {
    auto paused = scheduler_of(on_demand_of(12, {4}));
    paused.pause();
    return paused.state();
  }());
  auto missing = reference, impossible = reference, typed = reference;
  missing.erase("free");
  impossible["free"] = {{4, 100}};
  typed["epoch"] = "zero";
  for (const std::string& text : {std::string("{"), std::string(), missing.dump(), impossible.dump(), typed.dump()}) {
    const auto restored = leases.restore(text);
    ASSERT_FALSE(restored.has_value()) << text;
    EXPECT_EQ(restored.error().code, Errc::corrupt) << restored.error().message;
  }
  EXPECT_EQ(leases.grant(0), (Lease{0, 0, 0, 4, 0.0}));
}

TEST(LeaseSchedulerTest, UnknownWorkersAreABug) {
  EXPECT_THROW((void)scheduler_of(on_demand_of(8, {4})).grant(1), std::out_of_range);
}

}  // namespace
}  // namespace troupe::data
