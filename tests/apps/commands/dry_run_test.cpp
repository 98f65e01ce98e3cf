// The time that `train --dry-run` forecasts, beside that of `simulate` on machines whose exchanges take no time.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

// A step takes what synthetic_step_ms says: all else is shorter by far.
constexpr const char* kDryRunConfig = R"([run]
epochs = 1
[model]
name = "mlp"
widths = [10]
[data]
name = "glyphs"
batch = 32
train_samples = 20000
[cluster]
synthetic_step_ms = 20
)";

class DryRunForecast : public ::testing::Test {
 protected:
  /// Asserts that both forecasts agree within 5 %.
  void compare(const std::vector<std::string>& settings) const {
    std::vector<std::string> dry{"train", config_, "--dry-run", "--json"};
    std::vector<std::string> simulated{"simulate", config_, "--cluster", cluster_, "--json"};
    for (const auto& setting : settings)
      for (auto* command : {&dry, &simulated}) command->insert(command->end(), {"--set", setting});
    const auto forecast = troupe(dry), reference = troupe(simulated);
    ASSERT_EQ(forecast.code, 0) << forecast.err;
    ASSERT_EQ(reference.code, 0) << reference.err;
    const double seconds = json::parse(reference.out)["simulated"]["train_s"];
    EXPECT_NEAR(json::parse(forecast.out)["forecast_s"].get<double>(), seconds, 0.05 * seconds);
  }
  TemporaryDirectory folder_;
  std::string config_ = folder_.write("a.toml", kDryRunConfig);
  std::string cluster_ = folder_.write("c.toml", "[hosts.node]\ncount = 4\nstep_ms = 0.001\n");
};

TEST_F(DryRunForecast, WorkersInStepWaitForTheSlowest) {
  compare({"strategy.name=bsp", "cluster.workers=3", "cluster.slowdown=[1,1,6]"});
}

TEST_F(DryRunForecast, StepsWithBackupWorkersDoNotWaitForTheSlowest) {
  compare({"strategy.name=bsp", "strategy.backup=1", "cluster.workers=3", "cluster.slowdown=[1,1,6]"});
}

TEST_F(DryRunForecast, UnequalBatchesCountAsSamples) {
  compare({"strategy.name=easgd", "cluster.workers=2", "data.batch=[32,64]", "cluster.slowdown=[1,4]"});
}

}  // namespace
}  // namespace troupe::apps
