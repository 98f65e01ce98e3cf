#include "data/order/lease_lookahead.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

using std::chrono::milliseconds;

/// A worker whose steps take `step`, with `buffers` buffers, at the end of a link: how long it waits in the last hundred
/// of `steps` steps, and the most leases that it held or had asked for.
struct Outcome {
  core::Duration still{0};
  std::size_t most = 0;
};

Outcome outcome_of(core::Duration link, core::Duration step, int steps, std::size_t buffers = 5) {
  LeaseLookahead lookahead;
  Outcome outcome;
  std::multimap<core::Duration, std::size_t> grants;  // in transit, by arrival
  std::size_t leases = 0;                             // arrived
  core::Duration now{0};
  const auto ask = [&] {
    const auto wanted = lookahead.most(buffers), has = leases + lookahead.pending();
    if (wanted <= has) return;
    lookahead.asked(static_cast<std::uint32_t>(wanted - has), now);
    grants.emplace(now + 2 * link, wanted - has);
    outcome.most = std::max(outcome.most, wanted);
  };
  const auto take = [&] {
    leases += grants.begin()->second;
    lookahead.granted(grants.begin()->second, grants.begin()->first, false);
    grants.erase(grants.begin());
  };
  ask();
  for (int done = 0; done < steps; ++done) {
    while (!grants.empty() && grants.begin()->first <= now) take();
    if (leases == 0) {
      if (done >= steps - 100) outcome.still += grants.begin()->first - now;
      now = grants.begin()->first;
      take();
    }
    --leases;
    now += step;
    lookahead.used(now, leases == 0);
    ask();
  }
  return outcome;
}

TEST(LeaseLookahead, WorkerDoesNotWaitForALink) {
  for (const int link_ms : {0, 1, 10, 70, 150}) {
    for (const int step_ms : {5, 20, 400}) {
      const auto outcome = outcome_of(milliseconds(link_ms), milliseconds(step_ms), 1000);
      EXPECT_EQ(outcome.still.count(), 0) << link_ms << " " << step_ms;
      // No more than the link needs: other workers cannot get the leases that one holds.
      EXPECT_LE(outcome.most, 5U + static_cast<std::size_t>(2 * link_ms / step_ms)) << link_ms << " " << step_ms;
    }
  }
}

TEST(LeaseLookahead, IsBounded) { EXPECT_LE(outcome_of(milliseconds(5000), milliseconds(1), 3000).most, 5U + 64U); }

/// After a signal the granted leases are computed: a second's worth, or the one beside that in computation.
TEST(LeaseLookahead, SlowStepsAreNotGrantedFarAhead) {
  const auto most = [](core::Duration step) { return outcome_of(milliseconds(0), step, 50, 17).most; };
  EXPECT_EQ(most(milliseconds(10)), 17U);
  EXPECT_EQ(most(milliseconds(100)), 11U);
  EXPECT_EQ(most(milliseconds(1000)), 2U);
  EXPECT_EQ(most(milliseconds(5000)), 2U);
  EXPECT_EQ(LeaseLookahead().most(17), 2U) << "it is not known yet how fast the steps are";
}

/// Batches that take `making` are made by `makers` at once: the worker's pace, at the end.
core::Duration pace_of(core::Duration step, core::Duration making, std::size_t makers, std::size_t buffers) {
  LeaseLookahead lookahead;
  std::deque<core::Duration> ready;  // of the leases held, in order
  std::vector<core::Duration> idle(makers);
  core::Duration now{0}, before{0};
  constexpr int kSteps = 400, kLast = 100;
  for (int done = 0; done < kSteps; ++done) {
    while (ready.size() < lookahead.most(buffers)) {
      const auto maker = std::ranges::min_element(idle);
      ready.push_back(*maker = std::max(*maker, now) + making);
      lookahead.asked(1, now);
      lookahead.granted(1, now, false);
    }
    now = std::max(now, ready.front()) + step;
    ready.pop_front();
    lookahead.made(making);
    lookahead.used(now, ready.empty());
    if (done == kSteps - kLast - 1) before = now;
  }
  return (now - before) / kLast;
}

TEST(LeaseLookahead, MakersOfBatchesAllHaveWork) {
  for (const int step_ms : {1, 50, 300, 2000})
    for (const int making_ms : {1, 100, 800, 4000})
      for (const std::size_t makers : {1U, 3U, 8U}) {
        // One batch for each maker, one that is ready and one in computation; and the same without a limit.
        const auto pace = pace_of(milliseconds(step_ms), milliseconds(making_ms), makers, makers + 2);
        const auto least = std::max(milliseconds(step_ms), milliseconds(making_ms) / static_cast<int>(makers));
        EXPECT_LE(pace, least + least / 20 + milliseconds(1)) << step_ms << " " << making_ms << " " << makers;
      }
}

TEST(LeaseLookahead, APauseOfAllWorkersIsAttributedToNone) {
  LeaseLookahead lookahead;
  lookahead.used(milliseconds(0), false);
  lookahead.used(milliseconds(10), false);
  lookahead.asked(3, milliseconds(10));
  lookahead.granted(1, milliseconds(12), false);
  lookahead.granted(2, milliseconds(900), true);
  EXPECT_EQ(lookahead.pending(), 0U);
  EXPECT_EQ(lookahead.ahead(), 0U);
  lookahead.used(milliseconds(905), false);  // the first after the pause: its time is no step time either
  lookahead.asked(1, milliseconds(905));
  lookahead.granted(1, milliseconds(955), false);
  EXPECT_EQ(lookahead.ahead(), 5U);
}

TEST(LeaseLookahead, ForgetsALinkThatWasSlow) {
  LeaseLookahead lookahead;
  for (int k = 0; k < 40; ++k) {
    const milliseconds now(10 * k);
    lookahead.used(now, false);
    lookahead.asked(1, now);
    lookahead.granted(1, now + milliseconds(k == 5 ? 90 : 1), false);
    if (k == 5) {
      EXPECT_EQ(lookahead.ahead(), 9U);
    }
  }
  EXPECT_EQ(lookahead.ahead(), 0U);
}

}  // namespace
}  // namespace troupe::data
