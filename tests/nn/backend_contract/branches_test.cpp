// Graphs that branch, against the double-precision reference: sums, joined channels, values with several readers, auxiliary losses.
#include "nn/zoo/models.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

constexpr ActivationLayer kRelu{Activation::relu};

class Branches : public BackendTestOver<std::int64_t> {
 protected:
  /// 3x3 convolutions with as many channels as the parameter says: with and without padding in blocked layouts.
  [[nodiscard]] Conv2dLayer conv(std::int64_t channels, bool bias = true) const {
    return {channels, 3, 1, 1, {}, 1, bias};
  }
};

TEST_P(Branches, ResidualBlocksMatchTheReference) {
  const std::int64_t c = param();
  const auto graph = graph_of_nodes({2, 8, 7}, {{conv(c), "stem"},
                                                {kRelu, "in"},
                                                {conv(c, false), "a"},
                                                {BatchNormLayer{}},
                                                {kRelu},
                                                {conv(c, false), "b"},
                                                {BatchNormLayer{}, "changed"},
                                                {AddLayer{}, "sum", {"changed", "in"}},
                                                {kRelu, "out"},
                                                {Conv2dLayer{2 * c, 1, 2, 0, {}, 1, false}, "kept"},
                                                {BatchNormLayer{}, "kept.bn"},
                                                {Conv2dLayer{2 * c, 3, 2, 1, {}, 1, false}, "d", {"out"}},
                                                {BatchNormLayer{}, "d.bn"},
                                                {AddLayer{}, "sum2", {"d.bn", "kept.bn"}},
                                                {kRelu},
                                                {AdaptiveAveragePoolLayer{1}},
                                                {LinearLayer{6, {}}}});
  expect_like_reference(backend(), graph, 4, nullptr, 1, 1e-4);
}

TEST_P(Branches, JoinedChannelsMatchTheReference) {
  const std::int64_t c = param();
  const auto graph = graph_of_nodes({2, 8, 7}, {{conv(c), "stem"},
                                                {kRelu, "in"},
                                                {Conv2dLayer{c, 1, 1, 0, {}}, "one", {"in"}},
                                                {kRelu, "one.relu"},
                                                {conv(c + 8), "three", {"in"}},
                                                {kRelu, "three.relu"},
                                                {PoolLayer{PoolKind::max, 3, 1, 1}, "pool", {"in"}},
                                                {ConcatLayer{}, "all", {"one.relu", "three.relu", "pool", "in"}},
                                                {conv(5)},
                                                {LinearLayer{6, {}}}});
  expect_like_reference(backend(), graph, 3);
}

TEST_P(Branches, AValueWithManyReadersGetsTheSumOfTheirGradients) {
  const std::int64_t c = param();
  const auto graph = graph_of_nodes({2, 6, 6}, {{conv(c), "x"},
                                                {kRelu, "f", {"x"}},
                                                {ActivationLayer{Activation::tanh}, "g", {"x"}},
                                                {AddLayer{}, "three", {"x", "f", "g"}},
                                                {AddLayer{}, "twice", {"three", "three"}},
                                                {kRelu, "h", {"twice"}},
                                                {DropoutLayer{0.3}, "dropped", {"twice"}},
                                                {ConcatLayer{}, "all", {"h", "dropped", "x"}},
                                                {FlattenLayer{}, "flat"},
                                                {LinearLayer{6, {}}, "l"},
                                                {kRelu, "r"},
                                                {AddLayer{}, "last", {"l", "r"}}});
  expect_like_reference(backend(), graph, 3);
}

TEST_P(Branches, InputsMayBeJoinedAsTheyCome) {
  const auto graph = graph_of_nodes(
      {3, 6, 6}, {{conv(param()), "a"}, {ConcatLayer{}, "with_images", {"input", "a"}}, {LinearLayer{5, {}}}});
  expect_like_reference(backend(), graph, 3);
}

TEST_P(Branches, VectorsAreJoinedWithPixelsAndWithEachOther) {
  const auto graph = graph_of_nodes({2, 6, 6}, {{conv(param()), "x"},
                                                {AdaptiveAveragePoolLayer{1}, "pixel"},
                                                {LinearLayer{7, {}}, "vector", {"x"}},
                                                {ConcatLayer{}, "both", {"vector", "pixel"}},
                                                {LinearLayer{5, {}}, "l"},
                                                {ConcatLayer{}, "all", {"l", "vector"}},
                                                {LinearLayer{6, {}}}});
  expect_like_reference(backend(), graph, 3);
}

TEST_P(Branches, AuxiliaryLossesTrainAndAreLeftOutOfEvaluation) {
  const std::int64_t c = param();
  const std::vector<NodeSpec> main{
      {conv(c), "stem"}, {kRelu, "in"}, {conv(c), "body", {"in"}}, {LinearLayer{6, {}}, "out"}};
  auto nodes = main;
  nodes.insert(nodes.begin() + 2, NodeSpec{LinearLayer{6, {}}, "extra"});
  nodes.insert(nodes.begin() + 2, NodeSpec{AdaptiveAveragePoolLayer{4}, "extra.pool", {"in"}});
  const auto graph = graph_of_nodes({2, 6, 6}, nodes, {{"extra", 0.3}});
  expect_like_reference(backend(), graph, 3);

  Model with(backend(), graph, {.batch = 3, .measure = false});  // evaluation alone does not measure either
  const auto evaluated = with.replica->evaluate(with.batch()).value();
  const auto trained = with.step();
  EXPECT_LT(evaluated.loss, trained.loss);
  Model without(backend(), graph_of_nodes({2, 6, 6}, main), {.batch = 3, .training = false, .measure = false});
  std::vector<float> parameters;
  const auto all = with.canonical_parameters();
  std::size_t offset = 0;
  for (const Parameter& parameter : graph.parameters()) {
    const auto size = static_cast<std::size_t>(parameter.size());
    if (!parameter.name.starts_with("extra"))
      parameters.insert(parameters.end(), all.begin() + static_cast<std::ptrdiff_t>(offset),
                        all.begin() + static_cast<std::ptrdiff_t>(offset + size));
    offset += size;
  }
  without.replica->import_canonical(parameters);
  EXPECT_EQ(without.replica->evaluate(without.batch()).value().loss, evaluated.loss);
}

TROUPE_OVER_BACKENDS_AND(Branches, ::testing::Values(4, 16, 24));

class ZooModel : public BackendTestOver<std::string> {};

TEST_P(ZooModel, OneStepMatchesTheReference) {
  ModelConfig config;
  config.name = param();
  config.activation =
      "tanh";  // with relu, one value that rounding moves across 0 changes the gradients of a whole channel
  const auto graph = build_model(config, {3, 64, 64}, 4);
  ASSERT_TRUE(graph) << graph.error().message;
  expect_like_reference(backend(), *graph, 4, nullptr, 1, 2e-3);  // rounding grows through dozens of normalised layers
}

TROUPE_OVER_BACKENDS_AND(ZooModel, ::testing::Values("resnet18", "googlenet_torch"));

}  // namespace
}  // namespace troupe::nn::testing
