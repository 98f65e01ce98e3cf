/// LeaseScheduler with Sharing::equal: the arithmetic of rounds and slices.
#include <gtest/gtest.h>

#include "core/random.hpp"
#include "tests/data/order/lease_schedulers.hpp"

namespace troupe::data {
namespace {

/// One epoch, round by round: the positions of all workers' slices, worker after worker.
std::vector<std::vector<std::int64_t>> rounds_of(LeaseScheduler& leases, std::uint32_t workers,
                                                 std::int64_t epoch_size) {
  std::vector<std::vector<std::int64_t>> rounds;
  while (!leases.epoch_done()) {
    auto& round = rounds.emplace_back();
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      const auto lease = leases.grant(worker);
      if (!lease) throw std::logic_error("a round is not whole");
      for (const auto position : positions(*lease, epoch_size)) round.push_back(position);
      leases.done(worker, lease->index);
    }
  }
  return rounds;
}

TEST(LeaseSharesTest, TheSplitDoesNotChangeWhichSamplesAStepSees) {
  for (const bool drop_tail : {false, true}) {
    auto one = scheduler_of(equal_of(1000, {128}, 1, drop_tail));
    auto two = scheduler_of(equal_of(1000, {64, 64}, 1, drop_tail));
    auto four = scheduler_of(equal_of(1000, {32, 32, 32, 32}, 1, drop_tail));
    const auto expected = rounds_of(one, 1, 1000);
    EXPECT_EQ(expected.size(), drop_tail ? 7u : 8u);
    EXPECT_EQ(rounds_of(two, 2, 1000), expected);
    EXPECT_EQ(rounds_of(four, 4, 1000), expected);
  }
}

TEST(LeaseSharesTest, IndexesAndPositionsOfARound) {
  auto leases = scheduler_of(equal_of(10, {2, 2}, 2));
  EXPECT_EQ(leases.grant(1), (Lease{1, 0, 2, 2, 0.0}));  // slice 1, in any order of requests
  EXPECT_EQ(leases.grant(1), (Lease{3, 0, 6, 2, 0.4}));
  EXPECT_EQ(leases.grant(0), (Lease{0, 0, 0, 2, 0.0}));
  EXPECT_EQ(leases.grant(0), (Lease{2, 0, 4, 2, 0.4}));
  EXPECT_EQ(leases.grant(0), (Lease{4, 0, 8, 2, 0.8}));
  EXPECT_EQ(leases.grant(1), (Lease{5, 0, 0, 2, 0.8}));  // the tail: positions 10 and 11 are 0 and 1
  EXPECT_EQ(leases.grant(0), std::nullopt);
  for (const std::uint64_t round : {0u, 1u, 2u})
    for (const std::uint32_t worker : {0u, 1u}) {
      EXPECT_FALSE(leases.epoch_done());
      leases.done(worker, 2 * round + worker);
    }
  EXPECT_TRUE(leases.epoch_done());
  leases.next_epoch();
  EXPECT_EQ(leases.grant(0), (Lease{6, 1, 0, 2, 1.0}));
}

TEST(LeaseSharesTest, RoundThatHasBegunCompletesDuringAPause) {
  auto leases = scheduler_of(equal_of(12, {2, 2}));
  const auto ahead = leases.grant(0);
  leases.pause();
  EXPECT_EQ(leases.grant(0), std::nullopt);
  EXPECT_FALSE(leases.quiet());
  const auto behind = leases.grant(1);
  ASSERT_TRUE(behind.has_value());
  EXPECT_EQ(behind->first, 2);
  EXPECT_EQ(leases.grant(1), std::nullopt);
  leases.done(0, ahead->index);
  EXPECT_FALSE(leases.quiet());
  leases.done(1, behind->index);
  EXPECT_TRUE(leases.quiet());
}

TEST(LeaseSharesTest, OwedLeasesAreThoseOfBegunRounds) {
  auto leases = scheduler_of(equal_of(24, {2, 2, 2}));
  EXPECT_EQ(leases.owed(), 0U);
  (void)leases.grant(0), (void)leases.grant(0);
  EXPECT_EQ(leases.owed(), 4U);
  (void)leases.grant(1);
  EXPECT_EQ(leases.owed(), 3U);
  (void)leases.lost(2);
  EXPECT_EQ(leases.owed(), 1U);
}

TEST(LeaseSharesTest, SurvivorsShareTheRoundsAfterTheBegunOnes) {
  auto leases = scheduler_of(equal_of(24, {2, 2, 2}));
  (void)leases.grant(0), (void)leases.grant(0);  // rounds 0 and 1 have begun: positions [0, 6) and [6, 12)
  (void)leases.grant(1);
  // Its slice of round 0, which it holds, and its slice of round 1, which was not granted yet.
  EXPECT_EQ(leases.lost(1), (std::vector<LeftLease>{{1, 0, 2, 2}, {4, 0, 8, 2}}));
  EXPECT_EQ(leases.grant(2)->first, 4);  // the other slices do not move
  EXPECT_EQ(leases.grant(2)->first, 10);
  EXPECT_EQ(leases.grant(2)->first, 14);  // round 2 has two members: [12, 14) and [14, 16)
  EXPECT_EQ(leases.grant(0)->first, 12);
  EXPECT_EQ(leases.grant(0), (Lease{9, 0, 16, 2, 16.0 / 24}));  // indexes still advance by 3 per round
  leases.joined(1);
  EXPECT_EQ(leases.grant(1)->first, 22);  // not in the begun round: the next has three members again, [20, 26)
  EXPECT_EQ(leases.grant(0)->first, 20);
}

TEST(LeaseSharesTest, ALostWorkerDoesNotHoldUpTheEpoch) {
  auto leases = scheduler_of(equal_of(4, {2, 2}));
  const auto lease = leases.grant(0);
  EXPECT_EQ(leases.lost(1), (std::vector<LeftLease>{{1, 0, 2, 2}}));
  EXPECT_FALSE(leases.epoch_done());
  leases.done(0, lease->index);
  EXPECT_TRUE(leases.epoch_done());
  EXPECT_DOUBLE_EQ(leases.epoch_position(), 1.0);
}

TEST(LeaseSharesTest, ATailTooShortForTheRoundOfAllIsDroppedWhenAWorkerReturns) {
  auto leases = scheduler_of(equal_of(5, {2, 2}, 1, true));
  leases.lost(1);
  const auto lease = leases.grant(0);  // [2, 5) is left: enough for one worker
  leases.joined(1);                    // and too little for two
  leases.done(0, lease->index);
  EXPECT_TRUE(leases.epoch_done());
}

/// Completes `rounds` rounds, across epochs.
void take_rounds(LeaseScheduler& leases, std::uint32_t workers, std::uint64_t rounds) {
  for (; rounds > 0; --rounds) {
    if (leases.epoch_done()) leases.next_epoch();
    for (std::uint32_t worker = 0; worker < workers; ++worker) leases.done(worker, leases.grant(worker).value().index);
  }
}

std::string state_at_rest(LeaseScheduler leases) {
  leases.pause();
  return leases.state();
}

// Whatever else was granted and reported done, the scheduler is then the same as one that ended at that round.
TEST(LeaseSharesTest, RewindRestoresTheEndOfAnyRoundOfTheEpoch) {
  constexpr std::uint32_t kWorkers = 3;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    core::Random random(seed, core::Purpose::test, 0);
    const auto options = equal_of(50, {4, 4, 4}, 3, seed % 2 == 0);
    const std::uint64_t per_epoch = seed % 2 == 0 ? 4 : 5;
    auto leases = scheduler_of(options), twin = scheduler_of(options);
    if (seed % 3 == 0) {  // a resumed session
      take_rounds(twin, kWorkers, 3);
      ASSERT_TRUE(leases.restore(state_at_rest(twin)));
    }
    const auto before = seed % 3 == 0 ? 3 : 0;
    const auto whole = random.below(3 * per_epoch - before);  // of the session
    take_rounds(leases, kWorkers, whole);
    if (leases.epoch_done() && random.below(2) == 0) leases.next_epoch();
    const auto ended = (before + whole) % per_epoch;  // of the epoch
    const auto of_epoch = leases.epoch_done() ? per_epoch : ended;
    const auto first = before + whole - of_epoch;  // rounds before the epoch
    // Some workers have begun further slices, and reported some of them done.
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
      for (auto more = random.below(4); more > 0; --more) {
        const auto lease = leases.grant(worker);
        if (lease && random.below(2) == 0) leases.done(worker, lease->index);
      }
    }
    const auto least = std::max<std::uint64_t>(first, before) - before;
    const auto rounds = least + random.below(whole - least + 1);
    ASSERT_TRUE(leases.rewind(rounds)) << "seed " << seed;
    take_rounds(twin, kWorkers, rounds);
    if (twin.epoch() < leases.epoch()) twin.next_epoch();
    EXPECT_EQ(state_at_rest(leases), state_at_rest(twin)) << "seed " << seed;
  }
}

TEST(LeaseSharesTest, RewindRefusesRoundsOfOtherEpochs) {
  auto leases = scheduler_of(equal_of(8, {2, 2}, 2));
  take_rounds(leases, 2, 3);
  const auto state = state_at_rest(leases);
  EXPECT_FALSE(leases.rewind(1));
  EXPECT_FALSE(leases.rewind(4));
  EXPECT_EQ(state_at_rest(leases), state);
  EXPECT_FALSE(scheduler_of(on_demand_of(8, {2, 2})).rewind(0));
}

TEST(LeaseSharesTest, ResumesWithAnotherNumberOfWorkers) {
  auto two = scheduler_of(equal_of(24, {2, 2}, 2));
  for (const std::uint32_t worker : {0u, 1u}) two.done(worker, two.grant(worker)->index);
  two.pause();
  auto three = scheduler_of(equal_of(24, {2, 2, 2}, 2));
  ASSERT_TRUE(three.restore(two.state()).has_value());
  EXPECT_EQ(three.grant(2), (Lease{4, 0, 8, 2, 4.0 / 24}));  // the round [4, 10); no index is used twice
}

}  // namespace
}  // namespace troupe::data
