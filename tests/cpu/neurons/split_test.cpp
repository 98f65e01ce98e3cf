// How neurons are divided among ranks.
#include "cpu/neurons/split.hpp"

#include <gtest/gtest.h>

namespace troupe::cpu::testing {
namespace {

TEST(NeuronSplit, SlicesAreAdjacentAndTheFirstAreOneLonger) {
  const std::vector<core::Slice> expected{{0, 3}, {3, 3}, {6, 2}, {8, 2}};
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(neurons_of(10, rank, 4), expected[rank]);
}

TEST(NeuronSplit, LayerNarrowerThanRanksLeavesTheLastWithout) {
  const auto layers = split_layers({{.inputs = 7, .outputs = 2}}, 5, 4);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].owners, 2u);
  EXPECT_EQ(layers[0].neurons, (std::vector<core::Slice>{{0, 1}, {1, 1}, {2, 0}, {2, 0}}));
  EXPECT_EQ(layers[0].values, (std::vector<core::Slice>{{0, 5}, {5, 5}, {10, 0}, {10, 0}}));
  EXPECT_EQ(layers[0].value_count(), 10u);
}

}  // namespace
}  // namespace troupe::cpu::testing
