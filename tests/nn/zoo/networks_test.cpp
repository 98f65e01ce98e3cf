// The models of the zoo: parameter counts as published, names as torchvision's, and the layers that are easy to get wrong.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"

namespace troupe::nn {
namespace {

Graph model(const std::string& name, Shape input, std::int64_t classes = 1000, bool zero_init_residual = false) {
  ModelConfig config;
  config.name = name;
  config.zero_init_residual = zero_init_residual;
  auto graph = build_model(config, input, classes);
  if (!graph) throw std::invalid_argument(graph.error().message);
  return *graph;
}

const Node& node_of(const Graph& graph, const std::string& name) {
  return *std::ranges::find(graph.nodes(), name, &Node::name);
}

TEST(Zoo, HasThePublishedNumbersOfParameters) {
  // alexnet: Krizhevsky et al. 2012 as Caffe's bvlc_alexnet counts it. googlenet: Caffe's 6,998,552, and two auxiliary heads of
  // (512 or 528) · 128 + 128 + 2048 · 1024 + 1024 + 1024 · 1000 + 1000. The others: torchvision's tables of weights, googlenet_torch with
  // its auxiliary heads. wrn_28_4: 16 · 27 for the first convolution; three groups of four blocks; see below.
  const std::map<std::string, std::int64_t> published{{"alexnet", 60'965'224},   {"alexnet_torch", 61'100'840},
                                                      {"googlenet", 13'378'280}, {"googlenet_torch", 13'004'888},
                                                      {"resnet18", 11'689'512},  {"resnet50", 25'557'032},
                                                      {"vgg16", 138'357'544},    {"vgg19", 143'667'240}};
  for (const auto& [name, parameters] : published) {
    const auto& zoo = model_zoo();
    const auto entry = std::ranges::find(zoo, name, &ZooEntry::name);
    ASSERT_NE(entry, zoo.end()) << name;
    EXPECT_EQ(entry->parameters, parameters) << name;
    EXPECT_EQ(entry->classes, 1000) << name;
  }
}

TEST(Zoo, WideResNetHasTheParametersOfItsFormula) {
  std::int64_t expected = 16 * 3 * 9;
  std::int64_t in = 16;
  for (const std::int64_t width : {64, 128, 256})
    for (int block = 0; block < 4; ++block) {
      expected += 2 * in + in * width * 9 + 2 * width + width * width * 9 + (block == 0 ? in * width : 0);
      in = width;
    }
  expected += 2 * 256 + 256 * 10 + 10;
  EXPECT_EQ(model("wrn_28_4", {3, 32, 32}, 10).parameter_count(), expected);
}

TEST(Zoo, NamesOfParametersAreThoseOfTorchvision) {
  std::map<std::string, std::vector<std::string>> wanted{
      {"alexnet_torch", {"features.0.weight", "features.10.bias", "classifier.1.weight", "classifier.6.bias"}},
      {"vgg16", {"features.0.weight", "features.28.weight", "classifier.0.weight", "classifier.3.bias"}},
      {"vgg19", {"features.34.weight"}},
      {"resnet18",
       {"conv1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight",
        "layer2.0.downsample.1.bias", "layer4.1.bn2.weight", "fc.bias"}},
      {"resnet50", {"layer1.0.downsample.0.weight", "layer4.2.conv3.weight", "layer4.2.bn3.bias"}},
      {"googlenet_torch",
       {"conv1.conv.weight", "inception3a.branch1.bn.weight", "inception4d.branch3.1.conv.weight",
        "inception5b.branch4.1.conv.weight", "aux1.conv.conv.weight", "aux2.fc2.bias", "fc.weight"}}};
  for (const auto& [name, parameters] : wanted) {
    const auto graph = model(name, {3, 224, 224});
    for (const auto& parameter : parameters)
      EXPECT_NE(std::ranges::find(graph.parameters(), parameter, &Parameter::name), graph.parameters().end())
          << name << " " << parameter;
  }
  const auto resnet = model("resnet18", {3, 224, 224});
  EXPECT_FALSE(
      std::ranges::any_of(resnet.parameters(), [](const auto& p) { return p.name == "layer1.0.downsample.0.weight"; }));
  EXPECT_EQ(resnet.statistics().front().name, "bn1.running_mean");
}

TEST(Zoo, ShapesFollowThePapers) {
  EXPECT_EQ(node_of(model("alexnet", {3, 227, 227}), "conv5").output, (Shape{256, 13, 13}));
  const auto googlenet = model("googlenet", {3, 224, 224});
  EXPECT_EQ(node_of(googlenet, "inception3a.concat").output, (Shape{256, 28, 28}));
  EXPECT_EQ(node_of(googlenet, "inception4e.concat").output, (Shape{832, 14, 14}));
  EXPECT_EQ(node_of(googlenet, "inception5b.concat").output, (Shape{1024, 7, 7}));
  EXPECT_EQ(node_of(googlenet, "loss1.pool").output, (Shape{512, 4, 4}));
  EXPECT_EQ(node_of(model("googlenet_torch", {3, 224, 224}), "inception5a.concat").output, (Shape{832, 7, 7}));
  EXPECT_EQ(node_of(model("resnet50", {3, 224, 224}), "layer4.2.add").output, (Shape{2048, 7, 7}));
  EXPECT_EQ(node_of(model("wrn_28_4", {3, 32, 32}, 10), "block3.3.add").output, (Shape{256, 8, 8}));
}

TEST(Zoo, GooglenetsTrainWithTwoAuxiliaryLosses) {
  for (const auto* name : {"googlenet", "googlenet_torch"}) {
    const auto graph = model(name, {3, 224, 224});
    ASSERT_EQ(graph.heads().size(), 3U) << name;
    EXPECT_EQ(graph.heads()[0].weight, 0.3);
    EXPECT_EQ(graph.heads()[1].weight, 0.3);
    EXPECT_EQ(graph.heads()[2].node, static_cast<int>(graph.nodes().size()) - 1);
  }
}

TEST(Zoo, ResidualBlocksMayStartAsTheIdentity) {
  const auto scale_of = [](const Graph& graph, const std::string& parameter) {
    return std::ranges::find(graph.parameters(), parameter, &Parameter::name)->initialiser.scale;
  };
  for (const auto& [name, last] : {std::pair{"resnet18", "layer1.0.bn2.weight"}, {"resnet50", "layer1.0.bn3.weight"}}) {
    EXPECT_EQ(scale_of(model(name, {3, 64, 64}, 10, false), last), 1.0) << name;
    EXPECT_EQ(scale_of(model(name, {3, 64, 64}, 10, true), last), 0.0) << name;
    EXPECT_EQ(scale_of(model(name, {3, 64, 64}, 10, true), "layer1.0.bn1.weight"), 1.0) << name;
  }
}

TEST(Zoo, MultiplyAddsAreThosePublished) {
  // Multiply-adds of one forward pass at 224x224: resnet18 1.814, resnet50 4.089 (torchvision's table of weights, "GFLOPS").
  // Training takes three times as many, less the first convolution's data gradient.
  const auto forward = [](const Graph& graph, const std::string& first) {
    double first_flops = 0;
    for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i)
      if (graph.nodes()[static_cast<std::size_t>(i)].name == first) first_flops = graph.training_flops(i) / 2;
    return (graph.training_flops() + first_flops) / 3 / 2 / 1e9;
  };
  EXPECT_NEAR(forward(model("resnet18", {3, 224, 224}), "conv1"), 1.814, 0.001);
  EXPECT_NEAR(forward(model("resnet50", {3, 224, 224}), "conv1"), 4.089, 0.001);
  EXPECT_NEAR(forward(model("vgg16", {3, 224, 224}), "features.0"), 15.470, 0.001);
}

}  // namespace
}  // namespace troupe::nn
