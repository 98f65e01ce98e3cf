// Engines by measurement, from a cache, and the list of descriptions in order of preference.
#include "gpu/program/choices.hpp"

#include <cstring>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gpu/device/host_device.hpp"
#include "gpu/program/trials.hpp"
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
      last = engine;
      return {};
    };
    on_fetch = [this](void* pinned, std::size_t bytes) {  // what a convolution with a bias that is NaN wrote
      std::memset(pinned, hiding.contains(last) ? 0 : 0xFF, bytes);
    };
  }
  int runs = 0;
  std::string broken;
  std::set<std::string> hiding;  // engines whose relu makes 0 of NaN

 private:
  std::string last;
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

TEST(ChoicesOfEngines, AReluThatHidesNanIsNotTaken) {
  for (const Type type : {Type::fp32, Type::bf16, Type::fp16})
    for (const bool measures : {true, false}) {
      SCOPED_TRACE(::testing::Message() << name_of(type) << (measures ? ", measured" : ", by rule"));
      auto fused = convolution(nn::Activation::relu);
      auto plain = convolution();
      fused.type = plain.type = type;
      const auto choice_where = [&](std::set<std::string> hiding) {
        TimedDevice device;
        device.hiding = std::move(hiding);
        Choices choices(device, nn::Precision::fp32, measures);
        choices.limit_workspace(kMuch);
        const auto choice = choices.choose({fused, plain});
        EXPECT_EQ(device.live_bytes(), 0u);
        return std::pair(choice.description, choice.plan->engine());
      };
      EXPECT_EQ(choice_where({}), std::pair(std::size_t{0}, std::string(measures ? "host direct" : "host staged")));
      EXPECT_EQ(choice_where({"host direct"}), std::pair(std::size_t{0}, std::string("host staged")));
      EXPECT_EQ(choice_where({"host staged"}), std::pair(std::size_t{0}, std::string("host direct")));
      EXPECT_EQ(choice_where({"host staged", "host direct"}).first, 1u) << "relu is a kernel of its own then";
    }
}

TEST(ChoicesOfEngines, AreNotTriedAgainWhereAllHideNan) {
  TimedDevice device;
  device.hiding = {"host staged", "host direct"};
  EngineCache cache({}, device.info());
  const auto choose = [&] {
    Choices choices(device, nn::Precision::fp32, true, &cache);
    choices.limit_workspace(kMuch);
    return choices.choose({convolution(nn::Activation::relu), convolution()}).description;
  };
  EXPECT_EQ(choose(), 1u);
  const int runs = device.runs;
  EXPECT_EQ(choose(), 1u);
  EXPECT_EQ(device.runs, runs);
}

TEST(ChoicesOfEngines, ThatCannotBeTriedForWantOfMemoryAreNotForgotten) {
  HostDevice scarce(HostDeviceOptions{.memory = 1000});
  const auto description = convolution(nn::Activation::relu);
  const auto stream = scarce.make_stream().value();
  auto plans = scarce.plans(description, kMuch).value();
  const auto tried = remove_hiding_nan(scarce, *stream, description, plans);
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_FALSE(*tried);
  EXPECT_TRUE(plans.empty()) << "relu is a kernel of its own: it needs no memory";
}

/// The host's engines do not.
TEST(ChoicesOfEngines, AReluOfTheHostHandsNanOn) {
  HostDevice device;
  const auto stream = device.make_stream().value();
  const auto description = convolution(nn::Activation::relu);
  auto plans = device.plans(description, kMuch).value();
  ASSERT_TRUE(remove_hiding_nan(device, *stream, description, plans));
  EXPECT_EQ(plans.size(), 2u);
  EXPECT_EQ(device.live_bytes(), 0u);
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
