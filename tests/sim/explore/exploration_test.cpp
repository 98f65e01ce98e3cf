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

/// The schedules of these seeds, as they were drawn before strategies declared their option spaces.
TEST(Exploration, ASeedDrawsTheSameScheduleInEveryVersion) {
  const std::map<std::string, std::uint64_t> hashes{
      {"bsp", 0x5d53ddbf3032e814U},        {"easgd", 0x2bf481074d8d33d8U},    {"eamsgd", 0x45d0482747ce6b94U},
      {"sync_easgd", 0x7afc2f20827feccaU}, {"downpour", 0x8d26d14da6c133f4U}, {"ssp", 0x708faaa62cf81cbcU},
      {"local_sgd", 0x36a16fdb73cb82d5U},  {"diloco", 0x66cf6f38b4f50bf4U},   {"mixed", 0x55d41eb84fc31a7dU},
      {"gossip", 0x08ffbf3799f40efeU},     {"pairs", 0x43a6e08345fe477aU},
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
