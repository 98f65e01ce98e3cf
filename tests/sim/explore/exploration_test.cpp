#include "sim/explore/exploration.hpp"

#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"

namespace troupe::explore {
namespace {

TEST(Exploration, HundredsOfSchedulesOfEveryStrategyViolateNothing) {
  const auto all = explore({.runs = 660, .seed = 1});
  ASSERT_TRUE(all.has_value()) << all.error().message;
  for (const auto& found : all->violations) ADD_FAILURE() << to_text(found);
  EXPECT_EQ(all->runs, 660U);
  EXPECT_EQ(all->runs_of.size(), strategies::registry().size());
  EXPECT_GT(all->lost, 50U) << "hardly anyone was ever lost: this tests nothing";
  EXPECT_GT(all->discarded, 100U) << "hardly anything ever came twice: this tests nothing";
}

TEST(Exploration, NewcomersComeWhereverAStrategyTakesThem) {
  for (const char* const strategy : {"bsp", "sync_easgd", "ssp", "local_sgd", "diloco", "easgd", "downpour"}) {
    const auto all = explore({.runs = 60, .seed = 1000, .strategy = strategy});
    ASSERT_TRUE(all.has_value()) << all.error().message;
    for (const auto& found : all->violations) ADD_FAILURE() << to_text(found);
    EXPECT_GT(all->newcomers, 3U) << strategy;
  }
  // A worker is lost in its last step. Workers that have finished push their rest; the others must take part, not wait for a newcomer.
  EXPECT_TRUE(explore({.runs = 1, .seed = 1107, .strategy = "diloco"})->violations.empty());
  for (const char* const strategy : {"mixed", "gossip", "pairs"})
    EXPECT_EQ(explore({.runs = 30, .strategy = strategy})->newcomers, 0U) << strategy;
}

TEST(Exploration, TheSameSeedGivesTheSameTraceHash) {
  const auto hash = [](std::uint64_t seed) { return explore({.runs = 55, .seed = seed})->hash; };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7), hash(8));
}

}  // namespace
}  // namespace troupe::explore
