#include "nn/graph.hpp"

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

constexpr Shape kMnist{1, 28, 28};

core::Result<Graph> build(const std::vector<Layer>& layers, Shape input = kMnist) {
  return Graph::sequential("m", input, layers, Loss::softmax_cross_entropy);
}

std::string error_of(const std::vector<Layer>& layers, Shape input = kMnist) {
  const auto graph = build(layers, input);
  if (graph) return "accepted";
  EXPECT_EQ(graph.error().code, core::Errc::config);
  return graph.error().message;
}

TEST(Graph, InfersShapesNamesAndParameters) {
  const auto graph = build({Conv2dLayer{20, 5, 1, 0, {}}, PoolLayer{PoolKind::max, 2, 2, 0},
                            Conv2dLayer{50, 5, 1, 0, {}}, PoolLayer{PoolKind::max, 2, 2, 0}, LinearLayer{500, {}},
                            ActivationLayer{Activation::relu}, DropoutLayer{0.5}, LinearLayer{10, {}}});
  ASSERT_TRUE(graph) << graph.error().message;
  std::vector<std::string> names;
  std::vector<std::string> shapes;
  for (const auto& node : graph->nodes()) {
    names.push_back(node.name);
    shapes.push_back(to_string(node.output));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"conv1", "pool1", "conv2", "pool2", "fc1", "relu1", "dropout1", "fc2"}));
  EXPECT_EQ(shapes, (std::vector<std::string>{"20x24x24", "20x12x12", "50x8x8", "50x4x4", "500", "500", "500", "10"}));
  EXPECT_EQ(graph->nodes()[0].inputs, std::vector<int>{-1});
  EXPECT_EQ(graph->nodes()[3].inputs, std::vector<int>{2});
  EXPECT_EQ(graph->output(), (Shape{10, 1, 1}));

  const auto& parameters = graph->parameters();
  ASSERT_EQ(parameters.size(), 8u);
  EXPECT_EQ(parameters[2].name, "conv2.weight");
  EXPECT_EQ(parameters[2].shape, (std::vector<std::int64_t>{50, 20, 5, 5}));
  EXPECT_EQ(parameters[2].fan_in, 500);    // 20 · 5 · 5
  EXPECT_EQ(parameters[2].fan_out, 1250);  // 50 · 5 · 5
  EXPECT_EQ(parameters[2].node, 2);
  EXPECT_EQ(parameters[5].name, "fc1.bias");
  EXPECT_EQ(parameters[5].shape, std::vector<std::int64_t>{500});
  EXPECT_EQ(parameters[5].initialiser, (Initialiser{InitialiserKind::constant, 0}));
  // 20·25+20 + 50·20·25+50 + 500·800+500 + 10·500+10
  EXPECT_EQ(graph->parameter_count(), 520 + 25050 + 400500 + 5010);
}

TEST(Graph, NormalisationHasCanonicalNamesShapesAndStatistics) {
  const auto graph = build({Conv2dLayer{8, 3, 1, 1, {}, 1, false}, BatchNormLayer{}, LrnLayer{}, LinearLayer{6, {}},
                            BatchNormLayer{}, LinearLayer{2, {}}},
                           {3, 4, 4});
  ASSERT_TRUE(graph) << graph.error().message;
  std::string nodes;
  for (const auto& node : graph->nodes()) nodes += node.name + " " + to_string(node.output) + "; ";
  EXPECT_EQ(nodes, "conv1 8x4x4; bn1 8x4x4; lrn1 8x4x4; fc1 6; bn2 6; fc2 2; ");
  std::string parameters;
  for (const auto& p : graph->parameters()) parameters += p.name + " " + std::to_string(p.size()) + "; ";
  EXPECT_EQ(parameters,
            "conv1.weight 216; bn1.weight 8; bn1.bias 8; fc1.weight 768; fc1.bias 6; bn2.weight 6; bn2.bias 6; "
            "fc2.weight 12; fc2.bias 2; ");
  EXPECT_EQ(graph->parameters()[1].shape, std::vector<std::int64_t>{8});
  EXPECT_EQ(graph->parameters()[1].initialiser, (Initialiser{InitialiserKind::constant, 1}));
  EXPECT_EQ(graph->parameters()[2].initialiser, (Initialiser{InitialiserKind::constant, 0}));
  const auto& statistics = graph->statistics();
  ASSERT_EQ(statistics.size(), 4u);
  EXPECT_EQ(statistics[0].name, "bn1.running_mean");
  EXPECT_EQ(statistics[1].name, "bn1.running_var");
  EXPECT_EQ(statistics[3].name, "bn2.running_var");
  EXPECT_EQ(statistics[0].initial, 0);
  EXPECT_EQ(statistics[1].initial, 1);
  EXPECT_EQ(statistics[1].channels, 8);
  EXPECT_EQ(statistics[3].channels, 6);
  EXPECT_EQ(statistics[3].node, 4);
}

TEST(Graph, GroupsDivideWeightsAndFans) {
  const auto graph = build({Conv2dLayer{12, 3, 1, 0, {}, 2}, LinearLayer{2, {}}}, {6, 5, 5});
  ASSERT_TRUE(graph) << graph.error().message;
  const auto& weight = graph->parameters()[0];
  EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{12, 3, 3, 3}));
  EXPECT_EQ(weight.fan_in, 27);   // 3 · 9
  EXPECT_EQ(weight.fan_out, 54);  // 6 · 9
  // 324 weights at 9 positions, forward and weight gradient; 2 x 108 fully connected, all three.
  EXPECT_EQ(graph->training_flops(), 2 * (2 * 324 * 9) + 3 * (2 * 216));
}

TEST(Graph, OutputSizesFollowStrideAndPaddingRoundedDown) {
  const auto graph =
      build({Conv2dLayer{4, 3, 2, 1, {}}, PoolLayer{PoolKind::average, 3, 2, 1}, FlattenLayer{}}, {3, 28, 11});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->nodes()[0].output, (Shape{4, 14, 6}));  // (28 + 2 − 3) / 2 + 1, (11 + 2 − 3) / 2 + 1
  EXPECT_EQ(graph->nodes()[1].output,
            (Shape{4, 7, 3}));  // (14 + 2 − 3) / 2 + 1 rounded down, (6 + 2 − 3) / 2 + 1 rounded down
  EXPECT_EQ(graph->output(), (Shape{84, 1, 1}));
}

TEST(Graph, ErrorsNameLayerInputAndMismatch) {
  EXPECT_EQ(error_of({}), "model \"m\": it has no layers");
  EXPECT_EQ(error_of({LinearLayer{10, {}}}, {0, 28, 28}),
            "model \"m\": its input 0x28x28 is not a shape of positive, bounded extents");
  EXPECT_EQ(error_of({ActivationLayer{Activation::relu}, FlattenLayer{}}),
            "model \"m\": no layer has parameters: there is nothing to train");
  EXPECT_EQ(error_of({Conv2dLayer{20, 5, 1, 0, {}}, PoolLayer{PoolKind::max, 25, 1, 0}, LinearLayer{10, {}}}),
            "model \"m\": layer \"pool1\" with input 20x24x24: kernel 25 is larger than the input with padding 0");
  EXPECT_EQ(error_of({Conv2dLayer{20, 5, 1, 5, {}}}),
            "model \"m\": layer \"conv1\" with input 1x28x28: padding 5 is not smaller than kernel 5");
  EXPECT_EQ(error_of({Conv2dLayer{20, 5, 0, 0, {}}}),
            "model \"m\": layer \"conv1\" with input 1x28x28: stride = 0 is not between 1 and 16,777,216");
  EXPECT_EQ(error_of({LinearLayer{0, {}}}),
            "model \"m\": layer \"fc1\" with input 1x28x28: outputs = 0 is not between 1 and 16,777,216");
  EXPECT_EQ(error_of({LinearLayer{10, {InitialiserKind::normal, -1}}}),
            "model \"m\": layer \"fc1\" with input 1x28x28: initialiser scale -1 is not a number ≥ 0");
  EXPECT_EQ(error_of({LinearLayer{10, {}}, DropoutLayer{1.0}}),
            "model \"m\": layer \"dropout1\" with input 10: rate = 1 is not between 0 and 1, without 1");
  EXPECT_EQ(
      error_of({Conv2dLayer{20, 5, 1, 0, {}}}),
      "model \"m\": layer \"conv1\", the last one, gives 20x24x24, and the loss needs a vector: end with a linear "
      "or flatten layer");
}

TEST(Graph, GroupAndNormalisationErrorsNameTheLayer) {
  const auto error = [](const Layer& layer) { return error_of({layer, LinearLayer{2, {}}}, {6, 5, 5}); };
  EXPECT_EQ(
      error(Conv2dLayer{12, 3, 1, 0, {}, 4}),
      "model \"m\": layer \"conv1\" with input 6x5x5: groups = 4 does not divide 6 input channels and 12 outputs");
  EXPECT_EQ(error(Conv2dLayer{9, 3, 1, 0, {}, 2}),
            "model \"m\": layer \"conv1\" with input 6x5x5: groups = 2 does not divide 6 input channels and 9 outputs");
  EXPECT_EQ(error(Conv2dLayer{9, 3, 1, 0, {}, 0}),
            "model \"m\": layer \"conv1\" with input 6x5x5: groups = 0 is not between 1 and 16,777,216");
  EXPECT_EQ(error(LrnLayer{4}),
            "model \"m\": layer \"lrn1\" with input 6x5x5: size = 4 is even: a window has a channel in its middle");
  EXPECT_EQ(error(LrnLayer{5, -1}),
            "model \"m\": layer \"lrn1\" with input 6x5x5: alpha = -1 is not between 0 and 1,000,000,000,000");
  EXPECT_EQ(error(LrnLayer{5, 1, 1, 0}),
            "model \"m\": layer \"lrn1\" with input 6x5x5: k = 0 is not between 1e-12 and 1,000,000,000,000");
  EXPECT_EQ(error(BatchNormLayer{0}),
            "model \"m\": layer \"bn1\" with input 6x5x5: epsilon = 0 is not between 1e-12 and 1,000,000,000,000");
  EXPECT_EQ(error(BatchNormLayer{1e-5, 1.5}),
            "model \"m\": layer \"bn1\" with input 6x5x5: momentum = 1.5 is not between 0 and 1");
}

TEST(Graph, SizesThatWouldOverflowAreErrors) {
  EXPECT_EQ(error_of({LinearLayer{1 << 24, {}}, LinearLayer{1 << 24, {}}}),
            "model \"m\": layer \"fc2\" with input 16777216: a weight of 16777216 x 16777216 is too large");
  EXPECT_EQ(error_of({Conv2dLayer{1 << 24, 4000, 1, 3999, {}}}),
            "model \"m\": layer \"conv1\" with input 1x28x28: a weight of 16777216 x 1 x 4000 x 4000 is too large");
  EXPECT_EQ(error_of({LinearLayer{10, {}}}, {1 << 24, 1 << 24, 1 << 24}),
            "model \"m\": its input 16777216x16777216x16777216 is not a shape of positive, bounded extents");
}

TEST(Graph, TrainingFlopsCountMultiplyAddsOfForwardAndBackward) {
  // fc1 3→5: 2 · 15 forward and 2 · 15 for its weights; fc2 5→2: 2 · 10 forward, for weights and for its input.
  const auto mlp = build({LinearLayer{5, {}}, ActivationLayer{Activation::tanh}, LinearLayer{2, {}}}, {3, 1, 1});
  ASSERT_TRUE(mlp);
  EXPECT_EQ(mlp->training_flops(), 2 * 30 + 3 * 20);
  // conv 1→2, 3x3 over 4x4 → 2x2: 18 weights at 4 positions.
  const auto conv = build({Conv2dLayer{2, 3, 1, 0, {}}, LinearLayer{2, {}}}, {1, 4, 4});
  ASSERT_TRUE(conv);
  EXPECT_EQ(conv->training_flops(), 2 * (2 * 18 * 4) + 3 * (2 * 16));
}

}  // namespace
}  // namespace troupe::nn
