#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "strategies/registry/registry.hpp"
#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(StrategiesTest, ListHasAllOfThem) {
  const auto outcome = troupe({"strategies"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& info : strategies::registry())
    EXPECT_NE(outcome.out.find(info.name + " "), std::string::npos) << info.name;
}

TEST(StrategiesTest, NameShowsItsOptionsWithDefaults) {
  const auto outcome = troupe({"strategies", "easgd"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("tau = 10"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("combine"), std::string::npos) << "an option of another strategy";
}

TEST(StrategiesTest, JsonIsALinePerStrategy) {
  const auto outcome = troupe({"strategies", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::size_t count = 0;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_NE(strategies::find(json["name"].get<std::string>()), nullptr);
    for (const auto& option : json["options"]) EXPECT_TRUE(option["key"].get<std::string>().starts_with("strategy."));
  }
  EXPECT_EQ(count, strategies::registry().size());
}

}  // namespace
}  // namespace troupe::apps
