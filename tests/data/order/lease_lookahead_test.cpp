#include "data/order/lease_lookahead.hpp"

#include <map>

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
    const auto wanted = buffers + lookahead.ahead(), has = leases + lookahead.pending();
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
