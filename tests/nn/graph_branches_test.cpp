// Graphs that branch: shapes, names, losses, and what errors say.
#include <gtest/gtest.h>

#include "nn/graph.hpp"

namespace troupe::nn {
namespace {

constexpr ActivationLayer kReluLayer{Activation::relu};

core::Result<Graph> branched(const std::vector<NodeSpec>& nodes, const std::vector<AuxiliaryLoss>& auxiliary = {}) {
  return Graph::build("m", {3, 8, 8}, nodes, Loss::softmax_cross_entropy, auxiliary);
}

std::string refusal(const std::vector<NodeSpec>& nodes, const std::vector<AuxiliaryLoss>& auxiliary = {}) {
  const auto graph = branched(nodes, auxiliary);
  return graph ? "accepted" : graph.error().message;
}

TEST(BranchedGraph, KnowsShapesReadersAndLosses) {
  const auto graph = branched({{Conv2dLayer{4, 3, 1, 1, {}}, "stem"},
                               {PoolLayer{PoolKind::max, 2, 2, 0}, "small"},
                               {LinearLayer{5, {}}, "extra"},
                               {Conv2dLayer{6, 3, 2, 1, {}}, "big", {"stem"}},
                               {ConcatLayer{}, "all", {"small", "big"}},
                               {AdaptiveAveragePoolLayer{1}},
                               {LinearLayer{5, {}}}},
                              {{"extra", 0.3}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->nodes()[4].output, (Shape{10, 4, 4}));
  EXPECT_EQ(graph->nodes()[4].inputs, (std::vector{1, 3}));
  EXPECT_EQ(graph->readers(0), (std::vector{1, 3}));
  EXPECT_EQ(graph->nodes()[5].name, "avgpool1");
  EXPECT_EQ(graph->nodes()[5].output, (Shape{10, 1, 1}));
  ASSERT_EQ(graph->heads().size(), 2U);
  EXPECT_EQ(graph->heads()[0].node, 2);
  EXPECT_EQ(graph->heads()[0].weight, 0.3);
  EXPECT_EQ(graph->heads()[1].node, 6);
  EXPECT_FALSE(graph->is_evaluated(2));
  EXPECT_TRUE(graph->is_evaluated(3));
}

TEST(BranchedGraph, WindowsThatHangOverTheEndCountWithCeil) {
  const auto size_of = [](std::int64_t size, const PoolLayer& pool) {
    return Graph::sequential("m", {1, size, size}, {pool, LinearLayer{2, {}}}, Loss::softmax_cross_entropy)
        .value()
        .nodes()[0]
        .output.height;
  };
  EXPECT_EQ(size_of(112, {PoolKind::max, 3, 2, 0, false}), 55);
  EXPECT_EQ(size_of(112, {PoolKind::max, 3, 2, 0, true}), 56);
  EXPECT_EQ(size_of(13, {PoolKind::max, 3, 2, 0, true}), 6);  // nothing is left over
  EXPECT_EQ(size_of(2, {PoolKind::max, 1, 2, 0, true}), 1);  // a window must not begin behind the input: PyTorch's rule
}

TEST(BranchedGraph, ErrorsNameTheLayerItsInputsAndTheirShapes) {
  const NodeSpec stem{Conv2dLayer{4, 3, 1, 1, {}}, "stem"};
  const NodeSpec small{PoolLayer{PoolKind::max, 2, 2, 0}, "small"};
  EXPECT_EQ(refusal({stem, small, {AddLayer{}, "sum", {"stem", "small"}}, {LinearLayer{2, {}}}}),
            "model \"m\": layer \"sum\" with inputs stem 4x8x8, small 4x4x4: its inputs differ in shape, and it adds "
            "value to value");
  EXPECT_EQ(refusal({stem, small, {ConcatLayer{}, "all", {"stem", "small"}}, {LinearLayer{2, {}}}}),
            "model \"m\": layer \"all\" with inputs stem 4x8x8, small 4x4x4: its inputs differ in height or width, and "
            "it joins channels");
  EXPECT_EQ(refusal({stem, {AddLayer{}, "sum"}, {LinearLayer{2, {}}}}),
            "model \"m\": layer \"sum\" with input 4x8x8: it adds two or more inputs");
  EXPECT_EQ(refusal({stem, {kReluLayer, "f", {"stem", "input"}}, {LinearLayer{2, {}}}}),
            "model \"m\": layer \"f\" with inputs stem 4x8x8, input 3x8x8: it takes one input, not 2");
  EXPECT_EQ(refusal({stem, {kReluLayer, "f", {"sten"}}, {LinearLayer{2, {}}}}),
            "model \"m\": layer \"f\": no earlier layer is called \"sten\" (nearest: \"stem\")");
  EXPECT_EQ(refusal({stem, stem, {LinearLayer{2, {}}}}),
            "model \"m\": layer \"stem\": the name \"stem\" is that of another layer");
  EXPECT_EQ(refusal({stem, {kReluLayer, "lost"}, {LinearLayer{2, {}}, "out", {"stem"}}}),
            "model \"m\": layer \"lost\": no layer and no loss reads it");
  EXPECT_EQ(refusal({stem, {LinearLayer{2, {}}}}, {{"nowhere", 0.3}}),
            "model \"m\": an auxiliary loss is on layer \"nowhere\", which it does not have");
  EXPECT_EQ(refusal({stem, {LinearLayer{3, {}}, "extra"}, {LinearLayer{2, {}}, "out", {"stem"}}}, {{"extra", 0.3}}),
            "model \"m\": layer \"extra\", which has a loss, has 3 outputs, and the last layer 2");
}

}  // namespace
}  // namespace troupe::nn
