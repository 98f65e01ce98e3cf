#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "strategies/registry/registry.hpp"
#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(ExploreTest, JsonIsOneLineAndTheSameSeedGivesTheSame) {
  const auto outcome = troupe({"simulate", "--explore", "33", "--seed", "5", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["runs"], 33);
  EXPECT_EQ(json["violations"].size(), 0U);
  EXPECT_EQ(json["strategies"].size(), strategies::registry().size());
  EXPECT_GT(json["events"], 1000);
  EXPECT_EQ(troupe({"simulate", "--explore", "33", "--seed", "5", "--json"}).out, outcome.out);
}

TEST(ExploreTest, OneStrategyAlone) {
  const auto outcome = troupe({"simulate", "--explore", "5", "--strategy", "gossip", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["strategies"]["gossip"], 5);
}

TEST(ExploreTest, CountOfOneIsSingular) {
  const auto outcome = troupe({"simulate", "--explore", "1", "--strategy", "gossip"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("1 schedule of 1 strategy: ")) << outcome.out;
}

TEST(ExploreTest, InvalidArgumentsAreUsageErrors) {
  EXPECT_EQ(troupe({"simulate", "--explore", "5", "--strategy", "gosip"}).code, 2);
  EXPECT_EQ(troupe({"simulate", "--explore", "0"}).code, 2);
  EXPECT_EQ(troupe({"simulate", "--strategy", "gossip"}).code, 2);
  EXPECT_EQ(troupe({"simulate"}).code, 2);
}

// The command that repeats a schedule names its seed, so that --seed must take the last one's too.
TEST(ExploreTest, SeedsOfAllSchedulesFitIntoTheSeedsType) {
  const auto last = troupe({"simulate", "--explore", "2", "--strategy", "gossip", "--seed", "9223372036854775806"});
  EXPECT_EQ(last.code, 0) << last.err;
  const auto beyond = troupe({"simulate", "--explore", "3", "--strategy", "gossip", "--seed", "9223372036854775806"});
  EXPECT_EQ(beyond.code, 2);
  EXPECT_EQ(
      beyond.err,
      "troupe: --seed 9223372036854775806: must be at most 9223372036854775805 with --explore 3: each schedule has "
      "the next seed\n");
}

}  // namespace
}  // namespace troupe::apps
