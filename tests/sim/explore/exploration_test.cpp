#include "sim/explore/exploration.hpp"

#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

#include "sim/explore/invariants/invariants.hpp"
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

TEST(Exploration, NewcomersJoinEveryStrategyThatTakesThem) {
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

TEST(Exploration, AnUnknownStrategyIsRefusedAndNotSkipped) {
  const auto all = explore({.runs = 1, .strategy = "bps"});
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, core::Errc::usage);
  EXPECT_EQ(all.error().message, "no strategy is called \"bps\": see `troupe strategies`");
  const auto schedule = draw_schedule("bps", 1);
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().message, all.error().message);
  EXPECT_FALSE(run_schedule({.strategy = "bps", .options = {}, .faults = {}}, strategies::make));
}

TEST(Exploration, AnUnknownStrategyHasNoInvariants) {
  const Schedule known{.strategy = "bsp", .options = {}, .faults = {}};
  const auto config = known.config().value();
  EXPECT_EQ(invariants_for(known, config, {})->size(), 2U) << "the general ones, and equal replicas";
  const auto unknown = invariants_for({.strategy = "bps", .options = {}, .faults = {}}, config, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, core::Errc::usage);
}

TEST(Exploration, AnOuterOptimizerWithoutAFormulaIsRefused) {
  EXPECT_THROW((void)checker(OuterRounds{.optimizer = core::OptimizerKind::adam}), std::logic_error);
  for (const auto& row : core::kOptimizers) {
    if (!row.outer) continue;
    EXPECT_NE(checker(OuterRounds{.optimizer = row.kind}), nullptr) << row.name;
  }
}

/// A seed in a report must draw the same schedule later. The hashes are of to_text() of 200 seeds, as this test prints them.
TEST(Exploration, ASeedDrawsTheSameScheduleInEveryVersion) {
  const std::map<std::string, std::uint64_t> hashes{
      {"bsp", 0x39ae3af73bab3152U},        {"easgd", 0x29e4975ed5eacb2fU},    {"eamsgd", 0x887e1ef12541f3eaU},
      {"sync_easgd", 0x64ff4f172dfd64d4U}, {"downpour", 0xa4d6f034ecd7f77dU}, {"ssp", 0xdb5002bd6649d40fU},
      {"local_sgd", 0xf8084ecfed0f9692U},  {"diloco", 0x37078192e51f3ba1U},   {"mixed", 0x47d9f78f2abe756cU},
      {"gossip", 0x933e68fca7013677U},     {"pairs", 0xec6e84c549b86f3fU},
  };
  for (const auto& [strategy, expected] : hashes) {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const auto schedule = draw_schedule(strategy, seed).value();
      for (const char c : to_text(schedule)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    EXPECT_EQ(hash, expected) << strategy;
  }
}

TEST(Exploration, TheSameSeedGivesTheSameTraceHash) {
  const auto hash = [](std::uint64_t seed) { return explore({.runs = 55, .seed = seed})->hash; };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7), hash(8));
}

}  // namespace
}  // namespace troupe::explore
