#include "nn/initialise.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "nn/layout.hpp"

namespace troupe::nn {
namespace {

Graph graph_of(InitialiserKind kind, double scale = 0.25) {
  auto graph =
      Graph::sequential("m", {2, 8, 8}, {Conv2dLayer{30, 5, 1, 0, {kind, scale}}, LinearLayer{40, {kind, scale}}},
                        Loss::softmax_cross_entropy);
  return std::move(graph.value());
}

std::vector<float> start(const Graph& graph, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(graph.parameter_count()), -1);
  initialise(graph, seed, values);
  return values;
}

/// The standard deviation of a slice around 0.
double deviation(const std::vector<float>& values, std::size_t offset, std::size_t count) {
  double sum = 0;
  for (std::size_t i = offset; i < offset + count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return std::sqrt(sum / static_cast<double>(count));
}

double largest(const std::vector<float>& values, std::size_t offset, std::size_t count) {
  double most = 0;
  for (std::size_t i = offset; i < offset + count; ++i) most = std::max<double>(most, std::abs(values[i]));
  return most;
}

// conv1.weight [30, 2, 5, 5]: fans 50 and 750, 1,500 values at 0; its bias 30; fc1.weight [40, 480]: 19,200 values at 1,530;
// its bias 40 at 20,730. Deviations of samples: within 5 · σ / sqrt(2n), 9 % of 1,500 and 2.6 % of 19,200.
constexpr std::size_t kConv = 1500;
constexpr std::size_t kLinearAt = 1530;
constexpr std::size_t kLinear = 19200;

TEST(Initialise, NormalHasItsDeviation) {
  const auto values = start(graph_of(InitialiserKind::normal), 1);
  EXPECT_NEAR(deviation(values, kLinearAt, kLinear), 0.25, 0.25 * 0.026);
}

TEST(Initialise, UniformStaysInItsBounds) {
  const auto values = start(graph_of(InitialiserKind::uniform), 1);
  EXPECT_NEAR(deviation(values, kLinearAt, kLinear), 0.25 / std::sqrt(3.0), 0.25 * 0.026);
  EXPECT_LE(largest(values, kLinearAt, kLinear), 0.25);
  EXPECT_GT(largest(values, kLinearAt, kLinear), 0.249);
}

TEST(Initialise, XavierAndHeUseTheFans) {
  const auto xavier = start(graph_of(InitialiserKind::xavier), 1);
  EXPECT_LE(largest(xavier, 0, kConv), std::sqrt(6.0 / 800));  // 50 + 750
  EXPECT_GT(largest(xavier, 0, kConv), 0.98 * std::sqrt(6.0 / 800));
  EXPECT_LE(largest(xavier, kLinearAt, kLinear), std::sqrt(6.0 / 520));  // 480 + 40
  EXPECT_GT(largest(xavier, kLinearAt, kLinear), 0.99 * std::sqrt(6.0 / 520));
  const auto he = start(graph_of(InitialiserKind::he), 1);
  EXPECT_NEAR(deviation(he, 0, kConv), std::sqrt(2.0 / 50), 0.09 * std::sqrt(2.0 / 50));
  EXPECT_NEAR(deviation(he, kLinearAt, kLinear), std::sqrt(2.0 / 480), 0.026 * std::sqrt(2.0 / 480));
}

TEST(Initialise, ConstantFillsWeightsAndBiasesAreZero) {
  const auto values = start(graph_of(InitialiserKind::constant), 1);
  EXPECT_EQ(std::count(values.begin(), values.end(), 0.25f), static_cast<std::ptrdiff_t>(kConv + kLinear));
  EXPECT_EQ(std::count(values.begin(), values.end(), 0.0f), 30 + 40);
}

TEST(Initialise, ParameterKDrawsFromStreamK) {
  const auto values = start(graph_of(InitialiserKind::uniform), 42);
  core::Random random(42, core::Purpose::initialise, 2);  // fc1.weight is the third parameter
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(values[kLinearAt + i], static_cast<float>(random.uniform(-0.25, 0.25)));
  EXPECT_EQ(values, start(graph_of(InitialiserKind::uniform), 42));
  EXPECT_NE(values, start(graph_of(InitialiserKind::uniform), 43));
}

TEST(Initialise, NormalisationStartsAsTheIdentity) {
  const auto graph = Graph::sequential(
      "m", {3, 2, 2}, {BatchNormLayer{}, LinearLayer{2, {InitialiserKind::constant, 7}}}, Loss::softmax_cross_entropy);
  const auto values = start(*graph, 1);
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 6), (std::vector<float>{1, 1, 1, 0, 0, 0}));
  // running_mean [3] at 0, running_var [3] at the next multiple of 16, zero in between.
  std::vector<float> statistics(statistics_layout(*graph).arena_floats(), -1);
  ASSERT_EQ(statistics.size(), 32u);
  initialise_statistics(*graph, statistics);
  std::vector<float> want(32, 0.0f);
  want[16] = want[17] = want[18] = 1;
  EXPECT_EQ(statistics, want);
  statistics.pop_back();
  EXPECT_THROW(initialise_statistics(*graph, statistics), std::invalid_argument);
}

TEST(Initialise, ChecksItsSize) {
  std::vector<float> values(3);
  EXPECT_THROW(initialise(graph_of(InitialiserKind::he), 1, values), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::nn
