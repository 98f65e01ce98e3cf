// Gradients against finite differences of the loss, for every kind of layer and loss. tests/nn checks the reference in the same way, and
// the other tests of this folder compare backends with the reference; this test needs no reference.
//
// Central difference: the error is step² / 6 times the third derivative, plus the rounding of the loss, about 1e-7 / step. Where a
// parameter moves a value across a kink (relu, max), the difference quotient is not the derivative: such nets may have a few outliers.
#include <algorithm>
#include <cmath>
#include <ostream>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

constexpr ActivationLayer kTanh{Activation::tanh};

struct Net {
  const char* name;
  Graph graph;
  bool kinks = false;
};
void PrintTo(const Net& net, std::ostream* out) { *out << net.name; }

/// The layers under test stand between layers with parameters, so that their gradient of the input counts too.
Net image_net(const char* name, std::vector<Layer> layers, bool kinks = false) {
  layers.insert(layers.begin(), Conv2dLayer{4, 3, 1, 1, {}});
  layers.emplace_back(LinearLayer{5, {}});
  return {name, graph_of({3, 7, 6}, layers), kinks};
}

std::vector<Net> nets() {
  static_assert(std::variant_size_v<Layer> == 11, "a new kind of layer needs its net here");
  return {
      {"linear_and_flatten", graph_of({3, 2, 2}, {FlattenLayer{}, LinearLayer{6, {}}, kTanh, LinearLayer{5, {}}})},
      image_net("convolution_stride_padding", {Conv2dLayer{5, 3, 2, 1, {}}, kTanh}),
      image_net("grouped_convolution", {Conv2dLayer{6, 3, 1, 0, {}, 2}, kTanh}),
      image_net("average_pool", {PoolLayer{PoolKind::average, 3, 2, 1}, kTanh}),
      image_net("max_pool", {PoolLayer{PoolKind::max, 2, 2, 0}}, true),
      image_net("relu", {ActivationLayer{Activation::relu}}, true),
      image_net("sigmoid", {ActivationLayer{Activation::sigmoid}}),
      image_net("dropout", {kTanh, DropoutLayer{0.4}}),
      image_net("lrn", {LrnLayer{3, 1.0, 0.75, 1}}),
      image_net("batch_norm", {BatchNormLayer{}, kTanh}),
      image_net("adaptive_average_pool", {AdaptiveAveragePoolLayer{4}, kTanh}),
      {"residual_block_and_joined_branches", graph_of_nodes({3, 6, 6}, {{Conv2dLayer{4, 3, 1, 1, {}}, "stem"},
                                                                        {Conv2dLayer{4, 3, 1, 1, {}}, "a"},
                                                                        {kTanh},
                                                                        {Conv2dLayer{4, 1, 1, 0, {}}, "b"},
                                                                        {AddLayer{}, "sum", {"b", "stem"}},
                                                                        {kTanh, "tanh"},
                                                                        {Conv2dLayer{3, 3, 1, 1, {}}, "c", {"tanh"}},
                                                                        {ConcatLayer{}, "both", {"tanh", "c"}},
                                                                        {AdaptiveAveragePoolLayer{1}},
                                                                        {LinearLayer{5, {}}}})},
      {"auxiliary_loss", graph_of_nodes({3, 6, 6},
                                        {{Conv2dLayer{4, 3, 1, 1, {}}, "stem"},
                                         {LinearLayer{5, {}}, "extra"},
                                         {kTanh, "tanh", {"stem"}},
                                         {LinearLayer{5, {}}}},
                                        {{"extra", 0.3}})},
      {"squared_error", graph_of({12, 1, 1}, {LinearLayer{6, {}}, kTanh, LinearLayer{4, {}}}, Loss::squared_error)},
  };
}

class FiniteDifferences : public BackendTestOver<Net> {};

TEST_P(FiniteDifferences, AreTheGradient) {
  const float step = param().kinks ? 5e-4f : 1e-2f;
  const double tolerated = param().kinks ? 1e-3 : 5e-4;
  Model model(backend(), param().graph, {.batch = 6});
  (void)model.step();
  const auto gradients = model.canonical_gradients();
  auto parameters = model.canonical_parameters();
  std::size_t tried = 0;
  std::size_t outliers = 0;
  for (std::size_t i = 0; i < parameters.size(); i += 3) {
    const float kept = parameters[i];
    double loss[2];
    for (const int side : {0, 1}) {
      parameters[i] = kept + (side == 0 ? -step : step);
      model.replica->import_canonical(parameters);
      loss[side] = model.step().loss;
    }
    parameters[i] = kept;
    const double quotient = (loss[1] - loss[0]) / (2 * step);
    ++tried;
    if (param().kinks && std::abs(quotient - gradients[i]) > tolerated && std::abs(quotient - gradients[i]) < 0.05)
      ++outliers;
    else
      EXPECT_NEAR(quotient, gradients[i], tolerated) << "parameter " << i;
  }
  EXPECT_LE(outliers, tried / 8);
}

TROUPE_OVER_BACKENDS_AND(FiniteDifferences, ::testing::ValuesIn(nets()));

std::vector<Net> nets_named(const std::vector<std::string>& names) {
  std::vector<Net> chosen;
  for (auto& net : nets())
    if (std::ranges::find(names, net.name) != names.end()) chosen.push_back(std::move(net));
  return chosen;
}

TROUPE_OVER_PROGRAM_AND(Numpy, FiniteDifferences, numpy_program(),
                        ::testing::ValuesIn(nets_named({"linear_and_flatten", "grouped_convolution", "average_pool",
                                                        "max_pool", "relu", "sigmoid", "squared_error"})));
TROUPE_OVER_PROGRAM_AND(Torch, FiniteDifferences, torch_program(),
                        ::testing::ValuesIn(nets_named({"batch_norm", "residual_block_and_joined_branches",
                                                        "auxiliary_loss"})));

}  // namespace
}  // namespace troupe::nn::testing
