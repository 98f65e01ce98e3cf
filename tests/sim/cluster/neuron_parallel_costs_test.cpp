// Forecasts of a neuron-parallel step, beside values by hand and what the Blue Gene paper found.
#include "sim/cluster/neuron_parallel_costs.hpp"

#include <array>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::sim {
namespace {

constexpr std::array<std::int64_t, 4> kWidths{784, 512, 512, 10};

TEST(NeuronParallelCosts, OneRankOnlyComputes) {
  const auto time = neuron_parallel_step_time(kWidths, 64, 1, 1e9, 1e-3, 1e9);
  // 2 · 64 · (2 · 784 · 512 + 3 · 512 · 512 + 3 · 512 · 10)
  EXPECT_DOUBLE_EQ(time.compute_s, 0.205389824);
  EXPECT_EQ(time.communication_s, 0);
  EXPECT_EQ(time.total_s(), time.compute_s);
}

TEST(NeuronParallelCosts, FourRanksMatchValuesByHand) {
  const auto time = neuron_parallel_step_time(kWidths, 64, 4, 1e9, 1e-3, 1e9);
  // 2 · 64 · (2 · 784 · 128 + 3 · 512 · 128 + 3 · 512 · 3): the last layer's 10 neurons are 3, 3, 2, 2
  EXPECT_DOUBLE_EQ(time.compute_s, 0.051445760);
  // 5 exchanges of 1 ms; 3/4 · 4 bytes · 64 · (4 · 512 + 10) = 395,136 ns
  EXPECT_DOUBLE_EQ(time.communication_s, 0.005395136);
  const auto paper = neuron_parallel_step_time(kWidths, 64, 4, 1e9, 1e-3, 1e9, NeuronMessages::broadcasts);
  EXPECT_EQ(paper.compute_s, time.compute_s);
  // each of 4 ranks, in 2 rounds: 5 · 1 ms, and 4 bytes · 64 · (4 · 128 + 3) = 131,840 ns
  EXPECT_DOUBLE_EQ(paper.communication_s, 8 * 0.00513184);
}

TEST(NeuronParallelCosts, LayerNarrowerThanTheRanksUsesFewer) {
  const std::array<std::int64_t, 2> widths{100, 4};
  const auto four = neuron_parallel_step_time(widths, 1, 4, 1e9, 0, 1e9);
  const auto many = neuron_parallel_step_time(widths, 1, 64, 1e9, 0, 1e9);
  EXPECT_EQ(many.compute_s, four.compute_s);
  EXPECT_EQ(many.communication_s, four.communication_s);
}

// The paper's machine: messages of 90 ns and 2 GB/s (section 2.2). Its speed is not told; 8192 neurons took one rank more than 50 minutes for
// 2,000 iterations, so it was below 0.45 GFLOP/s. Found: best at 8 neurons per rank (16 for width 512), with efficiencies of 0.29 to 0.68
// there, and a speedup of 375 on 1,024 ranks for width 8192.
TEST(NeuronParallelCosts, ForecastOfTheBlueGeneProgramIsNearItsMeasurements) {
  for (const std::int64_t width : {32, 128, 512, 2048, 8192}) {
    const std::array<std::int64_t, 3> widths{width, width, width};
    const auto time = [&](std::int64_t ranks) {
      return neuron_parallel_step_time(widths, 1, ranks, 0.4e9, 90e-9, 2e9, NeuronMessages::broadcasts).total_s();
    };
    std::int64_t best = 1;
    for (std::int64_t ranks = 1; ranks <= width; ranks *= 2)
      if (time(ranks) < time(best)) best = ranks;
    EXPECT_EQ(width / best, 8) << width;
    const double speedup = time(1) / time(best);
    EXPECT_GE(speedup / static_cast<double>(best), 0.29) << width;
    EXPECT_LE(speedup / static_cast<double>(best), 0.75) << width;
    if (width == 8192) {
      EXPECT_NEAR(speedup, 375, 0.1 * 375);
    }
  }
}

TEST(NeuronParallelCosts, RefusesWhatCannotBe) {
  const std::array<std::int64_t, 2> widths{3, 4};
  const std::array<std::int64_t, 2> none{3, 0};
  EXPECT_THROW((void)neuron_parallel_step_time({}, 1, 1, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW((void)neuron_parallel_step_time(none, 1, 1, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW((void)neuron_parallel_step_time(widths, 0, 1, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW((void)neuron_parallel_step_time(widths, 1, 0, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW((void)neuron_parallel_step_time(widths, 1, 1, 0, 0, 1), std::invalid_argument);
  EXPECT_THROW((void)neuron_parallel_step_time(widths, 1, 1, 1, std::nan(""), 1), std::invalid_argument);
  EXPECT_THROW((void)neuron_parallel_step_time(widths, 1, 1, 1, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::sim
