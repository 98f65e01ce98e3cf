#include "data/images/jitter.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/images/golden.hpp"

namespace troupe::data {
namespace {

/// The first six columns and five rows of the golden picture, channel by channel.
std::vector<std::uint8_t> small_picture() {
  std::vector<std::uint8_t> pixels;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 6; ++x) pixels.push_back(static_cast<std::uint8_t>(37 * x + 91 * y + 53 * c + x * y));
  return pixels;
}

std::vector<int> jittered(JitterStep step, float factor) {
  Jitter jitter;
  jitter.factors[static_cast<std::size_t>(step)] = factor;
  auto pixels = small_picture();
  apply_jitter(jitter, pixels);
  return {pixels.begin(), pixels.end()};
}

TEST(JitterTest, StepsAreTorchvisions) {
  EXPECT_EQ(jittered(JitterStep::brightness, 1.3f), golden::kBrightness);
  EXPECT_EQ(jittered(JitterStep::contrast, 0.6f), golden::kContrast);
  EXPECT_EQ(jittered(JitterStep::saturation, 1.7f), golden::kSaturation);
}

TEST(JitterTest, StepsAreTakenInTheirOrder) {
  const auto both = [](const std::array<JitterStep, 3>& order) {
    auto pixels = small_picture();
    apply_jitter({order, {1.5f, 0.5f, 1}}, pixels);
    return pixels;
  };
  auto expected = small_picture();
  apply_jitter({{}, {1, 1, 1}}, expected);
  EXPECT_EQ(expected, small_picture());
  apply_jitter({{JitterStep::contrast, JitterStep::saturation, JitterStep::brightness}, {1, 0.5f, 1}}, expected);
  apply_jitter({{JitterStep::contrast, JitterStep::saturation, JitterStep::brightness}, {1.5f, 1, 1}}, expected);
  EXPECT_EQ(both({JitterStep::contrast, JitterStep::saturation, JitterStep::brightness}), expected);
  EXPECT_NE(both({JitterStep::brightness, JitterStep::saturation, JitterStep::contrast}), expected);
}

TEST(JitterTest, FactorsStayInTheirRangesAndEveryOrderIsDrawn) {
  std::set<std::array<JitterStep, 3>> orders;
  for (std::uint64_t k = 0; k < 500; ++k) {
    core::Random random(3, core::Purpose::test, k);
    const auto jitter = draw_jitter({0.4, 1.5, 0}, random);
    EXPECT_GE(jitter.factors[0], 0.6f);
    EXPECT_LE(jitter.factors[0], 1.4f);
    EXPECT_GE(jitter.factors[1], 0);
    EXPECT_LE(jitter.factors[1], 2.5f);
    EXPECT_EQ(jitter.factors[2], 1);
    auto steps = jitter.order;
    std::ranges::sort(steps);
    EXPECT_EQ(steps, (std::array{JitterStep::brightness, JitterStep::contrast, JitterStep::saturation}));
    orders.insert(jitter.order);
  }
  EXPECT_EQ(orders.size(), 6u);
}

}  // namespace
}  // namespace troupe::data
