// Whether a convolution sums up the statistics of the batch norm behind it: by measurement, from a cache, from a plan; and the trial of engines
// that would.
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gpu/program/choices.hpp"
#include "gpu/program/measuring.hpp"
#include "gpu/program/trials.hpp"
#include "tests/gpu/idle_device.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::size_t kPlenty = 1 << 20;
constexpr float kPixels = 72;

Convolution norm_convolution() { return {.shape = {{2, 6, 6, 4}, {2, 6, 6, 8}, 3, 1, 1, 1}, .type = Type::fp16}; }
Convolution summed_convolution() {
  Convolution c = norm_convolution();
  c.statistics = true;
  return c;
}

/// A plan under another name.
class NamedPlan final : public ConvolutionPlan {
 public:
  explicit NamedPlan(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::size_t workspace() const noexcept override { return kHostWorkspace; }
  [[nodiscard]] std::string engine() const override { return name_; }

 private:
  std::string name_;
};

/// A device whose clock runs while plans run, for as long as `seconds` says. Two engines sum up statistics: what a trial fetches from them
/// is right, but for `wrong`: what is added to the sum at each execution.
class SummingDevice final : public IdleDevice {
 public:
  SummingDevice() {
    on_run = [this](const std::string& engine) -> core::Result<void> {
      ++runs;
      ++runs_of[engine];
      now += seconds.at(engine);
      last = engine;
      return {};
    };
    // sum, squares, mean, variance of equal numbers: 1
    on_fetch = [this](void* pinned, std::size_t bytes) {
      const float values[] = {kPixels, kPixels, 1, 0};
      float value = values[fetches++ % 4];
      if (fetches % 4 == 1 && wrong.contains(last)) value += wrong[last] * static_cast<float>(runs_of[last]);
      for (std::size_t at = 0; at < bytes; at += sizeof value)
        std::memcpy(static_cast<std::byte*>(pinned) + at, &value, sizeof value);
    };
  }
  core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(const Convolution& c, std::size_t w) override {
    if (!c.statistics) return IdleDevice::plans(c, w);
    if (!sums) return core::fail(core::Errc::config, "no engine sums");
    std::vector<std::unique_ptr<ConvolutionPlan>> all;
    for (const char* name : {"sums a", "sums b"}) all.push_back(std::make_unique<NamedPlan>(name));
    return all;
  }
  core::Result<std::unique_ptr<ConvolutionPlan>> plan(const Convolution& c, std::size_t w,
                                                      const std::string& engine) override {
    if (!c.statistics) return IdleDevice::plan(c, w, engine);
    auto all = plans(c, w);
    if (!all) return tl::unexpected(all.error());
    for (auto& plan : *all)
      if (plan->engine() == engine) return std::move(plan);
    return core::fail(core::Errc::config, "no such engine");
  }
  std::map<std::string, double> seconds{{"host staged", 1}, {"host direct", 0.5}, {"sums a", 0.4}, {"sums b", 0.3}};
  std::map<std::string, float> wrong;
  bool sums = true;
  int runs = 0;

 private:
  std::map<std::string, int> runs_of;
  std::string last;
  int fetches = 0;
};

struct Chosen {
  std::string summed;  // empty: apart
  std::string apart;
  nlohmann::json named;  // in the plan, for the description with statistics
  bool operator==(const Chosen&) const = default;
};

Chosen choose(Choices& choices) {
  choices.limit_workspace(kPlenty);
  const auto choice = choices.choose_statistics(norm_convolution());
  const auto engines = nlohmann::json::parse(choices.to_plan().json).at("engines");
  return {choice.summed ? choice.summed->engine() : "", choice.apart->engine(),
          engines.value(to_string(summed_convolution()), nlohmann::json())};
}

Chosen choose(SummingDevice& device, EngineCache* cache = nullptr, bool measures = true) {
  Choices choices(device, nn::Precision::fp16, measures, cache);
  auto chosen = choose(choices);
  EXPECT_EQ(choose(choices), chosen);  // known
  EXPECT_EQ(device.live_bytes(), 0u);
  return chosen;
}

TEST(ChoicesOfStatistics, AreTheFastestEngineWhereItBeatsTheTwoApart) {
  SummingDevice device;
  EXPECT_EQ(choose(device), (Chosen{"sums b", "host direct", "sums b"}));
  device.seconds["sums b"] = 0.45;
  EXPECT_EQ(choose(device), (Chosen{"sums a", "host direct", "sums a"}));
}

TEST(ChoicesOfStatistics, AreApartWhereThatIsFasterOrNoEngineSumsAndThePlanSaysSo) {
  SummingDevice device;
  device.seconds["sums a"] = device.seconds["sums b"] = 0.6;
  EXPECT_EQ(choose(device), (Chosen{"", "host direct", kStatisticsApart}));
  device.sums = false;
  EXPECT_EQ(choose(device), (Chosen{"", "host direct", kStatisticsApart}));
}

TEST(ChoicesOfStatistics, ByRuleAreTheFirstEngineThatSumsRight) {
  SummingDevice device;
  EXPECT_EQ(choose(device, nullptr, false), (Chosen{"sums a", "host staged", "sums a"}));
  device.wrong["sums a"] = 10;
  EXPECT_EQ(choose(device, nullptr, false), (Chosen{"sums b", "host staged", "sums b"}));
}

TEST(ChoicesOfStatistics, AreKeptInTheCacheUnderADescriptionOfTheirOwn) {
  for (const bool faster : {true, false}) {
    SummingDevice device;
    if (!faster) device.seconds["sums a"] = device.seconds["sums b"] = 0.6;
    EngineCache cache({}, device.info());
    const auto chosen = choose(device, &cache);
    const auto known = cache.find(to_string(summed_convolution()));
    ASSERT_TRUE(known);
    EXPECT_EQ(known->engine, faster ? "sums b" : kStatisticsApart);
    EXPECT_NEAR(known->seconds, faster ? 0.3 : 0.5, 1e-12);
    EXPECT_EQ(cache.find(to_string(norm_convolution()))->engine, "host direct");
    const int runs = device.runs;
    EXPECT_EQ(choose(device, &cache), chosen);
    EXPECT_EQ(device.runs, runs);
  }
}

TEST(ChoicesOfStatistics, AreNotTriedAgainWhereAllEnginesSumWrong) {
  SummingDevice device;
  device.wrong = {{"sums a", 10}, {"sums b", -10}};
  EngineCache cache({}, device.info());
  EXPECT_EQ(choose(device, &cache).summed, "");
  const int runs = device.runs;
  EXPECT_EQ(choose(device, &cache), (Chosen{"", "host direct", kStatisticsApart}));
  EXPECT_EQ(device.runs, runs);
}

TEST(ChoicesOfStatistics, OfAPlanAreFollowed) {
  SummingDevice device;
  for (const bool together : {true, false}) {
    device.seconds["sums b"] = together ? 0.3 : 0.7;
    device.seconds["sums a"] = together ? 0.4 : 0.7;
    Choices first(device, nn::Precision::fp16, true);
    const auto chosen = choose(first);
    device.seconds["sums b"] = together ? 0.7 : 0.3;
    Choices second(device, nn::Precision::fp16, true);
    ASSERT_TRUE(second.take(first.to_plan()));
    const int runs = device.runs;
    EXPECT_EQ(choose(second), chosen);
    EXPECT_EQ(second.to_plan().json, first.to_plan().json);
    EXPECT_EQ(device.runs, runs);
  }
}

TEST(ChoicesOfStatistics, OfAPlanThatKnowsNothingOfThemAreApart) {
  SummingDevice device;
  Choices first(device, nn::Precision::fp16, true);
  first.limit_workspace(kPlenty);
  (void)first.choose({norm_convolution()});
  Choices second(device, nn::Precision::fp16, true);
  ASSERT_TRUE(second.take(first.to_plan()));
  EXPECT_EQ(choose(second), (Chosen{"", "host direct", nullptr}));
  EXPECT_EQ(second.to_plan().json, first.to_plan().json);
}

/// Earlier versions took engines for deterministic whose sums are not.
TEST(ChoicesOfStatistics, OfAPlanForADeterministicRunAreForgotten) {
  SummingDevice device;
  Convolution deterministic = summed_convolution();
  deterministic.deterministic = true;
  Choices first(device, nn::Precision::fp16, true);
  (void)choose(first);
  auto old = nlohmann::json::parse(first.to_plan().json);
  old["engines"][to_string(deterministic)] = "sums a";
  Choices second(device, nn::Precision::fp16, true);
  ASSERT_TRUE(second.take({old.dump()}));
  EXPECT_EQ(second.to_plan().json, first.to_plan().json);
}

TEST(ChoicesOfStatistics, OfAPlanWithAnEngineThatIsGoneAreRefused) {
  SummingDevice device;
  Choices first(device, nn::Precision::fp16, true);
  (void)choose(first);
  device.sums = false;
  Choices second(device, nn::Precision::fp16, true);
  ASSERT_TRUE(second.take(first.to_plan()));
  EXPECT_THROW((void)choose(second), LoweringFailed);
}

/// The engines that are left of two that a device offers.
std::size_t left_of(SummingDevice& device, const Convolution& description) {
  auto plans = device.plans(description, kPlenty).value();
  const auto stream = device.make_stream().value();
  EXPECT_TRUE(remove_wrong_statistics(device, *stream, description, plans).value());
  return plans.size();
}

TEST(TrialOfStatistics, RefusesSumsThatAreNotOverwritten) {
  SummingDevice device;
  EXPECT_EQ(left_of(device, summed_convolution()), 2u);
  device.wrong["sums a"] = kPixels;  // it adds to what is there
  EXPECT_EQ(left_of(device, summed_convolution()), 1u);
  device.wrong["sums a"] = std::nanf("");
  EXPECT_EQ(left_of(device, summed_convolution()), 1u);
  device.wrong["sums a"] = kPixels * 0x1p-20F;  // other bits, within what rounding may do
  EXPECT_EQ(left_of(device, summed_convolution()), 2u);
}

/// All shapes that a step may ask for: groups, strides, kernels wider than the image.
TEST(TrialOfStatistics, PassesTheEnginesOfTheHost) {
  for (const Type type : {Type::bf16, Type::fp16})
    for (const bool bias : {false, true})
      for (const ConvolutionShape& shape : {ConvolutionShape{{2, 6, 6, 4}, {2, 6, 6, 8}, 3, 1, 1, 1},
                                            ConvolutionShape{{3, 9, 7, 8}, {3, 5, 4, 6}, 1, 2, 0, 2},
                                            ConvolutionShape{{1, 2, 2, 3}, {1, 2, 2, 5}, 5, 1, 2, 1},
                                            ConvolutionShape{{2, 1, 1, 2}, {2, 1, 1, 2}, 1, 1, 0, 1}}) {
        HostDevice device;
        const Convolution description{.shape = shape, .type = type, .bias = bias, .statistics = true};
        auto plans = device.plans(description, kPlenty).value();
        const auto stream = device.make_stream().value();
        EXPECT_TRUE(remove_wrong_statistics(device, *stream, description, plans).value());
        EXPECT_EQ(plans.size(), 2u) << to_string(description);
        EXPECT_EQ(device.live_bytes(), 0u);
      }
}

TEST(TrialOfStatistics, WithoutMemoryLeavesThemToAPassOfTheirOwn) {
  HostDevice scarce(HostDeviceOptions{.memory = 1000, .is_measurable = true});
  const auto stream = scarce.make_stream().value();
  auto plans = scarce.plans(summed_convolution(), kPlenty).value();
  EXPECT_FALSE(remove_wrong_statistics(scarce, *stream, summed_convolution(), plans).value());
  EXPECT_TRUE(plans.empty());
  EngineCache cache({}, scarce.info());
  Choices choices(scarce, nn::Precision::fp16, true, &cache);
  EXPECT_EQ(choose(choices).summed, "");
  EXPECT_FALSE(cache.find(to_string(summed_convolution()))) << "more memory may be free the next time";
}

/// Workers of one run, and its replay, choose by themselves then: the bits must not depend on what memory is free.
TEST(ChoicesOfStatistics, ByRuleWithoutMemoryAreRefused) {
  HostDevice scarce(HostDeviceOptions{.memory = 1000, .is_measurable = true});
  Choices choices(scarce, nn::Precision::fp16, false);
  try {
    choose(choices);
    FAIL() << "something was chosen";
  } catch (const LoweringFailed& failed) {
    EXPECT_EQ(failed.error.code, core::Errc::out_of_memory);
  }
}

TEST(TimesOfStatistics, AreOfBothWays) {
  HostDevice device(HostDeviceOptions{.is_measurable = true});
  const auto stream = device.make_stream().value();
  const auto plans = device.plans(summed_convolution(), kPlenty).value();
  const auto apart = device.plans(norm_convolution(), kPlenty).value();
  const auto times = time_statistics(device, *stream, summed_convolution(), plans, *apart.front()).value();
  EXPECT_GT(times.summed.seconds, 0);
  EXPECT_GT(times.apart, 0);
  EXPECT_EQ(device.live_bytes(), 0u);
}

}  // namespace
}  // namespace troupe::gpu::testing
