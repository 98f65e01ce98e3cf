// Histories as text, the generator's histories, and their documented conduct.
#include "tests/histories/history.hpp"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experiment/run_spec.hpp"
#include "tests/histories/conduct.hpp"
#include "tests/histories/generator.hpp"
#include "tests/small_config.hpp"

namespace troupe::histories {
namespace {

constexpr std::uint64_t kSeeds = 2000;

TEST(HistoryText, ReadsBackWhatItWrites) {
  const History history{.workers = 3,
                        .nodes = 2,
                        .late = 1,
                        .tls = true,
                        .settings = {"strategy.name=easgd", "run.journal=60 KB"},
                        .events = {{.what = Doing::kill, .after = 30, .node = 1},
                                   {.what = Doing::interrupt, .after = 4, .nodes = 2, .workers = 4},
                                   {.what = Doing::crash, .after = 0, .nodes = 0, .workers = 1},
                                   {.what = Doing::evaluate, .after = 5}}};
  EXPECT_EQ(to_text(history),
            "workers=3 nodes=2 late=1 tls=1 strategy.name=easgd run.journal=60~KB | kill:1+30 interrupt:2/4+4 "
            "crash:0/1+0 evaluate+5");
  EXPECT_EQ(parse(to_text(history)).value(), history);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto drawn = generate(seed);
    ASSERT_EQ(parse(to_text(drawn)).value(), drawn) << to_text(drawn);
  }
}

TEST(HistoryText, NamesTheWordThatItCannotRead) {
  for (const std::string word : {"kill+3", "kill:1", "kill:1+3x", "kill:2+3", "burn:1+3", "interrupt:1+3",
                                 "interrupt:2/1+3", "evaluate:1+3", "interrupt:0/0+3"}) {
    const auto read = parse("workers=2 nodes=2 | " + word);
    ASSERT_FALSE(read) << word;
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  }
  for (const std::string word : {"workers", "workers=", "workers=x", "people=3", "nodes=2y"}) {
    const auto read = parse(word + " nodes=1 |");
    ASSERT_FALSE(read) << word;
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(parse("workers=1 nodes=2 |"));
  EXPECT_FALSE(parse("workers=2 nodes=2 late=2 |"));
}

TEST(Generator, SameSeedDrawsTheSameAndAllKindsAreDrawn) {
  std::set<std::string> strategies, inner;
  std::set<Doing> doings;
  std::set<std::uint32_t> workers, nodes;
  bool tls = false, late = false, finite = false, bounded = false, backup = false, alone = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto history = generate(seed);
    EXPECT_EQ(history, generate(seed));
    strategies.insert(history.strategy());
    inner.insert(history.setting("strategy.inner"));
    workers.insert(history.workers);
    nodes.insert(history.nodes);
    tls |= history.tls;
    late |= history.late > 0;
    finite |= history.epochs > 0;
    bounded |= !history.setting("run.journal").empty();
    backup |= !history.setting("strategy.backup").empty();
    ASSERT_FALSE(history.events.empty());
    for (const auto& event : history.events) {
      doings.insert(event.what);
      alone |= event.workers > 0 && event.nodes == 0;
    }
  }
  EXPECT_EQ(strategies.size(), strategies::registry().size());
  EXPECT_EQ(inner, (std::set<std::string>{"", "downpour", "easgd", "ssp"}));
  EXPECT_EQ(workers, (std::set<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(nodes, (std::set<std::uint32_t>{1, 2, 3}));
  EXPECT_TRUE(tls && late && finite && bounded && backup && alone);
  EXPECT_EQ(doings.size(), 10U);
}

TEST(Generator, SeedsOfATestRunCoverEveryStrategyAndEvent) {
  std::set<std::string> strategies;
  std::set<Doing> doings;
  for (const auto seed : telling_seeds(12)) {
    const auto history = generate(seed);
    strategies.insert(history.strategy());
    for (const auto& event : history.events) doings.insert(event.what);
  }
  EXPECT_EQ(strategies.size(), strategies::registry().size());
  EXPECT_EQ(doings.size(), 10U);
}

/// The needs that the code declares for the strategy, with `workers` workers.
core::Result<strategies::Needs> needs_of(const History& history, std::uint32_t workers) {
  auto overrides = history.settings;
  overrides.push_back(fmt::format("cluster.workers={}", workers));
  auto config = core::Config::parse(experiment::schema(), tests::small_config("", ""), "a.toml", overrides);
  if (!config) return tl::unexpected(config.error());
  auto settings = experiment::resolve(std::move(*config), experiment::Use::processes);
  if (!settings) return tl::unexpected(settings.error());
  return experiment::build_run_spec(*settings, false).map([](const auto& spec) { return spec.needs; });
}

TEST(Conducts, ConductsAgreeWithTheStrategiesNeeds) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto history = generate(seed);
    const auto needs = needs_of(history, history.workers);
    ASSERT_TRUE(needs) << to_text(history) << ": " << needs.error().message;
    const auto conduct = conduct_of(history);
    const bool colocated = history.setting("cluster.server_placement") == "colocated";
    EXPECT_EQ(conduct.in_step, needs->in_step) << to_text(history);
    EXPECT_EQ(conduct.last_step, needs->whole_steps) << to_text(history);
    EXPECT_EQ(conduct.goes_on, !needs->group && !(colocated && needs->servers)) << to_text(history);
    EXPECT_EQ(conduct.newcomers, needs->takes_newcomers() && !(colocated && needs->servers)) << to_text(history);
    for (const auto& event : history.events) {
      if (event.workers == 0) continue;
      EXPECT_TRUE(needs_of(history, event.workers)) << to_text(history);
    }
  }
}

TEST(Conducts, ExitCodesFollowFromConductAndEvents) {
  const Conduct on{}, ends{.goes_on = false};
  const Session calm{.nodes = 2};
  EXPECT_EQ(exit_codes(on, calm), (std::set<int>{}));
  EXPECT_EQ(exit_codes(on, {.nodes = 2, .may_finish = true}), (std::set{0}));
  EXPECT_EQ(exit_codes(on, {.nodes = 2, .interrupted = true}), (std::set{130}));
  EXPECT_EQ(exit_codes(on, {.nodes = 2, .interrupted = true, .may_finish = true}), (std::set{0, 130}));
  EXPECT_EQ(exit_codes(on, {.nodes = 2, .crashed = true}), (std::set{-1}));
  EXPECT_EQ(exit_codes(on, {.nodes = 2, .nodes_lost = 1, .lost = true}), (std::set<int>{}));
  EXPECT_EQ(exit_codes(on, {.nodes = 2, .nodes_lost = 2, .lost = true}), (std::set{75}));
  EXPECT_EQ(exit_codes(ends, {.nodes = 2, .nodes_lost = 1, .lost = true}), (std::set{75}));
  EXPECT_EQ(exit_codes(ends, {.nodes = 2, .nodes_lost = 1, .lost = true, .may_finish = true}), (std::set{0, 75}));
  EXPECT_EQ(exit_codes(ends, {.nodes = 2, .nodes_lost = 1, .lost = true, .interrupted = true}), (std::set{75, 130}));
}

}  // namespace
}  // namespace troupe::histories
