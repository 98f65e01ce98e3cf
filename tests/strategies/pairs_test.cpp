/// Random pairs: all workers draw the same perfect matching, and an average moves only the pair, whose mean stays.
#include "strategies/pairs.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::checksum;
using explore::Delays;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

std::unique_ptr<Strategy> every(Step tau, std::uint32_t workers) {
  return made("[strategy]\nname = \"pairs\"\ntau = " + std::to_string(tau), {.workers = workers, .servers = 0});
}

core::Random draw(std::uint64_t seed) { return {seed, core::Purpose::test, 0}; }

TEST(Pairs, EveryDrawIsAPerfectMatchingThatAllAgreeOn) {
  for (const std::vector<WorkerId>& members :
       {std::vector<WorkerId>{}, {4}, {0, 1}, {0, 2, 5}, {1, 2, 3, 9}, {0, 1, 2, 3, 4, 5, 6}}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      std::size_t alone = 0;
      for (const auto self : members) {
        const auto partner = partner_of(self, members, draw(seed));
        alone += partner ? 0 : 1;
        if (!partner) continue;
        EXPECT_NE(*partner, self);
        EXPECT_EQ(partner_of(*partner, members, draw(seed)), self);
      }
      EXPECT_EQ(alone, members.size() % 2);
    }
  }
}

TEST(Pairs, EveryPairIsAsLikelyAsAnyOther) {
  for (const std::uint32_t n : {4U, 5U}) {
    std::vector<WorkerId> members(n);
    std::iota(members.begin(), members.end(), 0U);
    constexpr int kDraws = 6000;
    std::map<std::pair<WorkerId, WorkerId>, int> met;
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
      for (const auto self : members)
        if (const auto partner = partner_of(self, members, draw(seed))) ++met[{self, *partner}];
    }
    const double share = n % 2 ? 1.0 / n : 1.0 / (n - 1);  // of 5 one is left over, so each pair is rarer
    EXPECT_EQ(met.size(), std::size_t{n} * (n - 1));
    for (const auto& [pair, times] : met) EXPECT_NEAR(times, kDraws * share, 5 * std::sqrt(kDraws * share));
  }
}

TEST(Pairs, MatchingsChangeFromRoundToRoundAndWithTheRunsSeed) {
  const Membership members{0, {0, 1, 2, 3, 4, 5}};
  std::set<std::uint64_t> matchings;
  for (const std::uint64_t seed : {1U, 2U}) {
    for (std::uint64_t round = 1; round <= 40; ++round) {
      std::uint64_t matching = 0;
      for (const auto self : members.workers) {
        const WorkerContext context{self, members, seed, 17 * self};  // a worker's own step must not matter
        matching = 10 * matching + *partner_of(self, members.workers, context.shared_random(round));
      }
      matchings.insert(matching);
    }
  }
  EXPECT_EQ(matchings.size(), 15U) << "6 members can be matched in 5 · 3 ways: 80 draws find them all";
}

TEST(Pairs, EveryWorkerMovesAsInASerialComputation) {
  for (const std::uint32_t n : {1U, 2U, 3U, 4U, 5U}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(std::to_string(n) + " workers, seed " + std::to_string(seed));
      const VirtualRunOptions options{
          .workers = n, .steps = 14, .seed = seed, .delays = Delays::extreme, .slowdown = {1, 4, 0.5}};
      VirtualRun run(*every(3, n), options);
      run.execute();
      std::vector<float> start(options.floats);
      run.quadratic().start(start);
      std::vector<Vector> x(n, Vector(start.begin(), start.end()));
      Membership all{0, {}};
      for (WorkerId w = 0; w < n; ++w) all.workers.push_back(w);
      for (Step step = 0; step < options.steps; ++step) {
        for (WorkerId w = 0; w < n; ++w) {
          std::vector<float> g(x[w].size());
          run.quadratic().gradient(step * n + w, std::vector<float>(x[w].begin(), x[w].end()), g);
          for (std::size_t i = 0; i < g.size(); ++i) x[w][i] -= 0.05 * g[i];
        }
        if ((step + 1) % 3 != 0) continue;
        const WorkerContext context{0, all, seed, 0};
        for (WorkerId w = 0; w < n; ++w) {
          const auto partner = partner_of(w, all.workers, context.shared_random((step + 1) / 3));
          if (!partner || *partner < w) continue;
          for (std::size_t i = 0; i < x[w].size(); ++i) x[w][i] = x[*partner][i] = (x[w][i] + x[*partner][i]) / 2;
        }
      }
      for (WorkerId w = 0; w < n; ++w)
        for (std::size_t i = 0; i < x[w].size(); ++i) ASSERT_NEAR(run.worker(w).params()[i], x[w][i], 2e-5);
      EXPECT_EQ(run.collectives().performed(), 4 * (n / 2));
    }
  }
}

TEST(Pairs, TheScheduleChangesNothing) {
  std::vector<std::uint64_t> first;
  for (const Delays delays : {Delays::even, Delays::extreme}) {
    VirtualRun run(*every(2, 5), {.workers = 5, .seed = 4, .delays = delays, .slowdown = {1, 6, 0.5}});
    run.execute();
    std::vector<std::uint64_t> now;
    for (WorkerId w = 0; w < 5; ++w) now.push_back(checksum(run.worker(w).params()));
    if (first.empty()) first = now;
    EXPECT_EQ(now, first);
    for (WorkerId w = 0; w < 5; ++w) EXPECT_EQ(run.worker(w).host().rule().weight(), 1);
  }
}

TEST(Pairs, NeedsAGroupAndTheModelIsTheMeanOfAllWorkers) {
  const auto needs = every(2, 3)->needs();
  EXPECT_TRUE(needs.group);
  EXPECT_TRUE(needs.in_step);
  EXPECT_FALSE(needs.servers);
  EXPECT_EQ(needs.model, ModelHome::weighted);
}

}  // namespace
}  // namespace troupe::strategies
