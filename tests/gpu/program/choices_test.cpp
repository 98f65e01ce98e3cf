// Engines by measurement, from a cache, and the list of descriptions in order of preference.
#include "gpu/program/choices.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gpu/device/host_device.hpp"
#include "tests/gpu/idle_device.hpp"

namespace troupe::gpu::testing {
namespace {

/// A device whose clock runs while plans run: "host staged" takes one second, "host direct" a half.
class TimedDevice final : public IdleDevice {
 public:
  TimedDevice() {
    on_run = [this](const std::string& engine) -> core::Result<void> {
      ++runs;
      if (engine == broken) return core::fail(core::Errc::io, "an engine that does not run");
      now += engine == "host staged" ? 1 : 0.5;
      return {};
    };
  }
  int runs = 0;
  std::string broken;
};

constexpr std::size_t kMuch = 1 << 20;

Convolution convolution(std::optional<nn::Activation> activation = {}) {
  return {.shape = {{2, 6, 6, 4}, {2, 6, 6, 8}, 3, 1, 1, 1}, .bias = true, .activation = activation};
}

TEST(ChoicesOfEngines, AreTheFastestWhereTimeCanBeMeasured) {
  TimedDevice device;
  Choices choices(device, nn::Precision::fp32, true);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution()}).plan->engine(), "host direct");
  EXPECT_EQ(choices.choose({MatrixProduct{.m = 3, .n = 4, .k = 5}}).plan->engine(), "host direct");
  const int runs = device.runs;
  (void)choices.choose({convolution()});
  EXPECT_EQ(device.runs, runs);  // known
  EXPECT_EQ(device.live_bytes(), 0u);
}

TEST(ChoicesOfEngines, AnEngineThatDoesNotRunIsNotTaken) {
  TimedDevice device;
  device.broken = "host direct";
  Choices choices(device, nn::Precision::fp32, true);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution()}).plan->engine(), "host staged");
}

TEST(ChoicesOfEngines, AnEngineThatCannotBeCapturedIsNotTaken) {
  TimedDevice device;
  device.uncapturable = "host direct";  // the faster one
  Choices choices(device, nn::Precision::fp32, true);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution()}).plan->engine(), "host staged");
}

TEST(ChoicesOfEngines, AreTheFirstWithoutMeasuring) {
  TimedDevice device;
  Choices choices(device, nn::Precision::fp32, false);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution()}).plan->engine(), "host staged");
  EXPECT_EQ(device.runs, 0);
}

TEST(ChoicesOfEngines, AreMeasuredOnceForACache) {
  TimedDevice device;
  EngineCache cache({}, device.info());
  {
    Choices choices(device, nn::Precision::fp32, true, &cache);
    choices.limit_workspace(kMuch);
    (void)choices.choose({convolution()});
  }
  const auto known = cache.find(to_string(convolution()));
  ASSERT_TRUE(known);
  EXPECT_EQ(known->engine, "host direct");
  EXPECT_EQ(known->seconds, 0.5);
  const int runs = device.runs;
  Choices choices(device, nn::Precision::fp32, true, &cache);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution()}).plan->engine(), "host direct");
  EXPECT_EQ(device.runs, runs);
}

TEST(ChoicesOfEngines, ACachedEngineThatIsGoneIsMeasuredAgain) {
  TimedDevice device;
  EngineCache cache({}, device.info());
  cache.put(to_string(convolution()), {"an engine of yesterday", 0.1});
  Choices choices(device, nn::Precision::fp32, true, &cache);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution()}).plan->engine(), "host direct");
}

TEST(ChoicesOfEngines, LessIsFusedWhereTheDeviceCannot) {
  HostDevice device;  // fuses relu, not tanh
  Choices choices(device, nn::Precision::fp32, false);
  choices.limit_workspace(kMuch);
  EXPECT_EQ(choices.choose({convolution(nn::Activation::relu), convolution()}).description, 0u);
  EXPECT_EQ(choices.choose({convolution(nn::Activation::tanh), convolution()}).description, 1u);
  EXPECT_THROW((void)choices.choose({convolution(nn::Activation::tanh)}), LoweringFailed);
}

TEST(ChoicesOfEngines, APlanDecidesWhatIsFused) {
  HostDevice device;
  Choices first(device, nn::Precision::fp32, false);
  first.limit_workspace(kMuch);
  (void)first.choose({convolution()});
  Choices second(device, nn::Precision::fp32, false);
  ASSERT_TRUE(second.take(first.to_plan()));
  second.limit_workspace(kMuch);
  EXPECT_EQ(second.choose({convolution(nn::Activation::relu), convolution()}).description, 1u);
}

}  // namespace
}  // namespace troupe::gpu::testing
