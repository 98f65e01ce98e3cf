#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(BenchTest, StepPrintsItsThreeFigures) {
  const auto outcome = troupe({"bench", "step", "--model", "mlp", "--batch", "4", "--precision", "fp32", "--threads",
                               "1", "--device", "cpu", "--seconds", "0.01", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.size(), 3u);
  const double images_per_s = json["images_per_s"], ms_per_step = json["ms_per_step"];
  EXPECT_GT(json["gflops"].get<double>(), 0);
  EXPECT_NEAR(images_per_s * ms_per_step / 1000, 4, 0.01);  // samples per step
}

TEST(BenchTest, ExchangePrintsItsThreeFigures) {
  for (const char* ranks_are : {"--threads", "--processes"}) {
    const auto outcome =
        troupe({"bench", "exchange", ranks_are, "--ranks", "3", "--parameters", "1000", "--rounds", "2", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.size(), 3u);
    for (const char* key : {"ms", "gb_per_s", "memcpy_ms"}) EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_EQ(troupe({"bench", "exchange", "--threads", "--processes"}).code, 2);
}

TEST(BenchTest, MissingFeaturesOfThisBuildAreExit78) {
  EXPECT_EQ(troupe({"bench", "step", "--precision", "bf16"}).code, 78);
  EXPECT_EQ(troupe({"bench", "step", "--device", "cuda"}).code, 78);
}

}  // namespace
}  // namespace troupe::apps
