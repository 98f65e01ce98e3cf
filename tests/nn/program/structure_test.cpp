// What can be fused with a node, and what belongs to it.
#include "nn/program/structure.hpp"

#include <gtest/gtest.h>

namespace troupe::nn::testing {
namespace {

Graph branching() {
  const auto graph = Graph::build("test", {3, 8, 8},
                                  {{Conv2dLayer{4, 3, 1, 1, {}}, "a"},
                                   {ActivationLayer{Activation::tanh}, "f"},
                                   {Conv2dLayer{4, 3, 1, 1, {}, 1, false}, "b"},
                                   {BatchNormLayer{}, "n"},
                                   {AddLayer{}, "sum", {"n", "f"}},
                                   {ActivationLayer{Activation::relu}, "r"},
                                   {BatchNormLayer{}, "m"},
                                   {ActivationLayer{Activation::tanh}, "t"},
                                   {LinearLayer{5, {}}, "extra", {"r"}},
                                   {LinearLayer{5, {}}, "out", {"t"}}},
                                  Loss::softmax_cross_entropy, {{"extra", 0.3}});
  EXPECT_TRUE(graph);
  return *graph;
}

// Nodes: 0 a, 1 f, 2 b, 3 n, 4 sum, 5 r, 6 m, 7 t, 8 extra, 9 out.
TEST(Structure, OnlyReaderIsTheOneNodeThatSeesAValue) {
  const Graph graph = branching();
  EXPECT_EQ(only_reader(graph, 0), 1);
  EXPECT_EQ(only_reader(graph, 1), -1);  // b and sum
  EXPECT_EQ(only_reader(graph, 3), 4);
  EXPECT_EQ(only_reader(graph, 8), -1);  // a loss
  EXPECT_TRUE(is_head(graph, 8));
  EXPECT_FALSE(is_head(graph, 7));
}

TEST(Structure, ActivationsAreFusedWithProductsAndReluWithNormsAndSumsOfTwo) {
  const Graph graph = branching();
  EXPECT_EQ(activation_behind(graph, 0), 1);
  EXPECT_EQ(activation_behind(graph, 4), 5);
  EXPECT_EQ(activation_behind(graph, 6), -1);  // tanh behind a norm
  EXPECT_EQ(activation_behind(graph, 9), -1);
}

TEST(Structure, ParametersOfANodeAreAdjacent) {
  const Graph graph = branching();
  EXPECT_EQ(count_of(graph.parameters(), 0), 2);
  EXPECT_EQ(count_of(graph.parameters(), 2), 1);
  EXPECT_EQ(first_of(graph.parameters(), 2), 2);
  EXPECT_EQ(first_of(graph.parameters(), 3), 3);
  EXPECT_EQ(first_of(graph.parameters(), 1), -1);
  EXPECT_EQ(first_of(graph.statistics(), 6), 2);
}

}  // namespace
}  // namespace troupe::nn::testing
