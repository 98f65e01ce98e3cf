// Where the samples of an epoch are. Every table adds up to the epoch.
#include <gtest/gtest.h>

#include "core/random.hpp"
#include "tests/data/order/lease_schedulers.hpp"

namespace troupe::data {
namespace {

std::vector<std::int64_t> parts(const LeaseScheduler& leases) {
  const auto a = leases.accounts();
  EXPECT_EQ(a.done + a.given_up + a.leased + a.free + a.omitted, a.size);
  return {a.done, a.given_up, a.leased, a.free, a.omitted};
}
using Parts = std::vector<std::int64_t>;

TEST(LeaseAccounts, SamplesGoFromFreeToLeasedToDone) {
  auto leases = scheduler_of(on_demand_of(10, {4, 2}, 2));
  EXPECT_EQ(parts(leases), (Parts{0, 0, 0, 10, 0}));
  const auto first = leases.grant(0), second = leases.grant(1), tail = leases.grant(0);
  EXPECT_EQ(parts(leases), (Parts{0, 0, 10, 0, 0}));
  leases.done(0, first->index);
  leases.give_up(1, second->index);
  EXPECT_EQ(parts(leases), (Parts{4, 2, 4, 0, 0}));
  leases.done(0, tail->index);
  EXPECT_TRUE(leases.epoch_done()) << "what was given up is finished, too";
  leases.next_epoch();
  EXPECT_EQ(parts(leases), (Parts{0, 0, 0, 10, 0}));
  EXPECT_EQ(leases.accounts().run_done, 8);
  EXPECT_EQ(leases.accounts().run_given_up, 2);
}

TEST(LeaseAccounts, ATailCountsWhatItCoversOnce) {
  auto leases = scheduler_of(on_demand_of(10, {4}));
  for (int k = 0; k < 3; ++k) leases.done(0, leases.grant(0)->index);  // the last one has 2 samples of the beginning
  EXPECT_EQ(parts(leases), (Parts{10, 0, 0, 0, 0}));
}

TEST(LeaseAccounts, ALostWorkersSamplesReturnOnDemandAndAreOmittedInStep) {
  auto on_demand = scheduler_of(on_demand_of(12, {4, 4}));
  static_cast<void>(on_demand.grant(0));
  static_cast<void>(on_demand.grant(1));
  on_demand.lost(1);
  EXPECT_EQ(parts(on_demand), (Parts{0, 0, 4, 8, 0}));

  auto equal = scheduler_of(equal_of(24, {4, 4, 4}));
  const auto mine = equal.grant(0);
  EXPECT_EQ(parts(equal), (Parts{0, 0, 4, 20, 0}))
      << "slices of a round that has begun are free until they are granted";
  static_cast<void>(equal.grant(1));
  equal.lost(1);  // with a granted slice
  equal.lost(2);  // with one that the round owed it
  EXPECT_EQ(parts(equal), (Parts{0, 0, 4, 12, 8}));
  equal.done(0, mine->index);
  EXPECT_EQ(parts(equal), (Parts{4, 0, 0, 12, 8}));
}

TEST(LeaseAccounts, ADroppedTailIsOmitted) {
  auto leases = scheduler_of(on_demand_of(10, {4}, 1, true));
  EXPECT_EQ(parts(leases), (Parts{0, 0, 0, 10, 0}));
  for (int k = 0; k < 2; ++k) leases.done(0, leases.grant(0)->index);
  EXPECT_EQ(parts(leases), (Parts{8, 0, 0, 0, 2}));
}

TEST(LeaseAccounts, ARewindTakesBackWhatWasDone) {
  auto leases = scheduler_of(equal_of(24, {4, 4}));
  for (int round = 0; round < 2; ++round)
    for (const auto worker : {0U, 1U}) leases.done(worker, leases.grant(worker)->index);
  ASSERT_TRUE(leases.rewind(1));
  EXPECT_EQ(parts(leases), (Parts{8, 0, 0, 16, 0}));
  EXPECT_EQ(leases.accounts().run_done, 8);
}

TEST(LeaseAccounts, ARestoreContinuesThem) {
  auto leases = scheduler_of(on_demand_of(8, {4}, 3));
  leases.done(0, leases.grant(0)->index);
  leases.done(0, leases.grant(0)->index);
  leases.next_epoch();
  leases.give_up(0, leases.grant(0)->index);
  leases.pause();
  auto restored = scheduler_of(on_demand_of(8, {4}, 3));
  ASSERT_TRUE(restored.restore(leases.state()));
  EXPECT_EQ(parts(restored), (Parts{0, 4, 0, 4, 0}));
  EXPECT_EQ(restored.accounts().run_done, 8);
  EXPECT_EQ(restored.accounts().run_given_up, 4);
  restored.pause();
  EXPECT_EQ(restored.state(), leases.state());

  auto older = leases.state();  // of a program that did not count
  for (const auto* key : {"given_up", "run_done", "run_given_up"}) {
    const auto begin = older.find(std::string("\"") + key), end = older.find(',', begin);
    older.erase(begin, end + 1 - begin);
  }
  ASSERT_TRUE(restored.restore(older));
  EXPECT_EQ(restored.accounts().run_done, 12) << "an epoch of 8, and 4";

  auto wrong = leases.state();
  wrong.replace(wrong.find("\"run_given_up\":4"), 16, "\"run_given_up\":3");
  EXPECT_FALSE(restored.restore(wrong)) << "fewer of the run than of the epoch";
  wrong = leases.state();
  wrong.replace(wrong.find("\"done_positions\":4"), 18, "\"done_positions\":3");
  EXPECT_FALSE(restored.restore(wrong)) << "more given up than finished";
}

TEST(LeaseAccounts, AddUpWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    core::Random random(seed, core::Purpose::strategy, 0);
    const bool equal = random.below(2) == 1, drop = random.below(2) == 1;
    auto leases = scheduler_of(equal ? equal_of(97, {3, 3, 3}, 3, drop) : on_demand_of(97, {3, 5, 2}, 3, drop));
    std::vector<std::pair<std::uint32_t, std::uint64_t>> held;
    std::int64_t useful = 0;
    for (int k = 0; k < 400 && !leases.finished(); ++k) {
      const auto worker = static_cast<std::uint32_t>(random.below(3));
      switch (random.below(8)) {
        case 0: leases.lost(worker); break;
        case 1: leases.joined(worker); break;
        case 2:
        case 3:
        case 4:
          if (const auto lease = leases.grant(worker)) held.emplace_back(worker, lease->index);
          break;
        default:
          if (held.empty()) break;
          const auto [holder, index] = held.back();
          held.pop_back();
          const auto before = leases.accounts();
          random.below(5) == 0 ? leases.give_up(holder, index) : leases.done(holder, index);
          useful += leases.accounts().done - before.done;
      }
      static_cast<void>(parts(leases));
      ASSERT_GE(leases.accounts().omitted, 0) << "seed " << seed;
      ASSERT_EQ(leases.accounts().run_done, useful) << "seed " << seed;
      if (leases.epoch_done()) leases.next_epoch();
    }
  }
}

}  // namespace
}  // namespace troupe::data
