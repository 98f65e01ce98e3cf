// Every layer against the double-precision reference: outputs, loss, all gradients. Each net has a parameterised layer before
// the layer under test, so that its data gradient is checked too. Tolerances are relative to a tensor's largest value.
#include <gtest/gtest.h>

#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

struct Channels {
  std::int64_t in, out;
};
class Convolution : public ::testing::TestWithParam<Channels> {};

TEST_P(Convolution, OddShapesStridePadding) {
  const auto [in, out] = GetParam();
  struct Window {
    std::int64_t kernel, stride, padding;
  };
  for (const auto& [kernel, stride, padding] : {Window{3, 1, 0}, {3, 2, 1}, {5, 1, 2}, {1, 1, 0}, {2, 3, 1}}) {
    SCOPED_TRACE(::testing::Message() << "kernel " << kernel << " stride " << stride << " padding " << padding);
    expect_like_reference(
        graph_of({2, 11, 8}, {Conv2dLayer{in, 1, 1, 0, {}}, Conv2dLayer{out, kernel, stride, padding, {}},
                              FlattenLayer{}, LinearLayer{7, {}}}),
        3);
  }
}

TEST_P(Convolution, AsFirstLayer) {
  const auto [in, out] = GetParam();
  expect_like_reference(graph_of({in, 9, 10}, {Conv2dLayer{out, 3, 1, 1, {}}, FlattenLayer{}, LinearLayer{6, {}}}), 5);
}

TEST_P(Convolution, WithoutABias) {
  const auto [in, out] = GetParam();
  expect_like_reference(
      graph_of({in, 6, 7}, {Conv2dLayer{in, 1, 1, 0, {}, 1, false}, Conv2dLayer{out, 3, 2, 1, {}, 1, false},
                            ActivationLayer{Activation::relu}, FlattenLayer{}, LinearLayer{5, {}}}),
      4);
}

INSTANTIATE_TEST_SUITE_P(Channels, Convolution,
                         ::testing::Values(Channels{1, 3}, Channels{3, 20}, Channels{20, 50}, Channels{50, 16},
                                           Channels{16, 32}, Channels{1, 1}),
                         [](const auto& info) {
                           return std::to_string(info.param.in) + "to" + std::to_string(info.param.out);
                         });

/// Channels in and out, groups.
struct Groups {
  std::int64_t in, out, groups;
};
class GroupedConvolution : public ::testing::TestWithParam<Groups> {};

TEST_P(GroupedConvolution, OddShapesStridePadding) {
  const auto [in, out, groups] = GetParam();
  struct Window {
    std::int64_t kernel, stride, padding;
  };
  for (const std::int64_t batch : {1, 5})
    for (const auto& [kernel, stride, padding] : {Window{3, 1, 1}, {5, 2, 2}, {1, 1, 0}, {2, 3, 1}}) {
      SCOPED_TRACE(::testing::Message() << "kernel " << kernel << " stride " << stride << " padding " << padding);
      expect_like_reference(
          graph_of({2, 9, 7}, {Conv2dLayer{in, 1, 1, 0, {}}, Conv2dLayer{out, kernel, stride, padding, {}, groups},
                               ActivationLayer{Activation::relu}, LinearLayer{7, {}}}),
          batch);
    }
}

TEST_P(GroupedConvolution, AsFirstLayerOnTwoThreadsWithoutABias) {
  const auto [in, out, groups] = GetParam();
  expect_like_reference(
      graph_of({in, 8, 9}, {Conv2dLayer{out, 3, 1, 1, {}, groups, false}, FlattenLayer{}, LinearLayer{6, {}}}), 5,
      nullptr, 2);
}

INSTANTIATE_TEST_SUITE_P(Channels, GroupedConvolution,
                         ::testing::Values(Groups{4, 6, 2}, Groups{6, 3, 3}, Groups{32, 64, 2}, Groups{96, 32, 2},
                                           Groups{5, 5, 5}, Groups{16, 16, 16}, Groups{48, 80, 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.in) + "to" + std::to_string(info.param.out) + "in" +
                                  std::to_string(info.param.groups);
                         });

class Pooling : public ::testing::TestWithParam<PoolLayer> {};

TEST_P(Pooling, BehindPlainAndBlockedConvolutions) {
  for (const std::int64_t channels : {1, 3, 20, 32})
    expect_like_reference(
        graph_of({2, 10, 9}, {Conv2dLayer{channels, 3, 1, 1, {}}, GetParam(), FlattenLayer{}, LinearLayer{6, {}}}), 3);
}

TEST_P(Pooling, OfTheImages) {
  expect_like_reference(graph_of({3, 10, 9}, {GetParam(), Conv2dLayer{4, 2, 1, 0, {}}, FlattenLayer{}}), 3);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Pooling,
                         ::testing::Values(PoolLayer{PoolKind::max, 2, 2, 0}, PoolLayer{PoolKind::max, 3, 2, 1},
                                           PoolLayer{PoolKind::max, 3, 1, 0}, PoolLayer{PoolKind::average, 2, 2, 0},
                                           PoolLayer{PoolKind::average, 3, 2, 1},
                                           PoolLayer{PoolKind::average, 3, 1, 2}));

class Activations : public ::testing::TestWithParam<Activation> {};

TEST_P(Activations, FusedWithConvolutionAndLinear) {
  const ActivationLayer f{GetParam()};
  for (const std::int64_t channels : {5, 16})
    expect_like_reference(
        graph_of({2, 6, 5}, {Conv2dLayer{channels, 3, 1, 0, {}}, f, Conv2dLayer{channels, 2, 1, 0, {}}, f,
                             FlattenLayer{}, LinearLayer{37, {}}, f, LinearLayer{9, {}}, f}),
        7);
}

TEST_P(Activations, OnTheirOwn) {
  const ActivationLayer f{GetParam()};
  for (const std::int64_t channels : {5, 16})
    expect_like_reference(
        graph_of({2, 6, 6}, {f, Conv2dLayer{channels, 3, 1, 0, {}}, PoolLayer{PoolKind::average, 2, 2, 0}, f,
                             FlattenLayer{}, f, LinearLayer{11, {}}, f, f, LinearLayer{9, {}}}),
        4);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Activations, ::testing::Values(Activation::relu, Activation::sigmoid, Activation::tanh),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Linear, OddSizesAndBatchOne) {
  for (const std::int64_t batch : {1, 3, 64})
    for (const std::int64_t width : {1, 5, 16, 100})
      expect_like_reference(graph_of({13, 1, 1}, {LinearLayer{width, {}}, LinearLayer{3, {}}}), batch);
}

TEST(Linear, TakesImagesDirectly) { expect_like_reference(graph_of({3, 5, 4}, {LinearLayer{8, {}}}), 6); }

TEST(Convolution, BehindAVector) {
  expect_like_reference(
      graph_of({6, 1, 1}, {LinearLayer{8, {}}, Conv2dLayer{5, 1, 1, 0, {}}, Conv2dLayer{6, 3, 1, 1, {}}}), 3);
}

TEST(Dropout, BetweenLinearAndBehindConvolution) {
  expect_like_reference(
      graph_of({3, 8, 8}, {Conv2dLayer{20, 3, 1, 0, {}}, ActivationLayer{Activation::relu}, DropoutLayer{0.3},
                           Conv2dLayer{32, 3, 1, 0, {}}, DropoutLayer{0.5}, FlattenLayer{}, LinearLayer{30, {}},
                           ActivationLayer{Activation::sigmoid}, DropoutLayer{0.5}, LinearLayer{10, {}}}),
      9);
}

TEST(Dropout, OfTheImages) { expect_like_reference(graph_of({3, 4, 4}, {DropoutLayer{0.2}, LinearLayer{5, {}}}), 3); }

TEST(Loss, SquaredErrorOnSigmoids) {
  expect_like_reference(graph_of({12, 1, 1},
                                 {LinearLayer{9, {}}, ActivationLayer{Activation::sigmoid}, LinearLayer{4, {}},
                                  ActivationLayer{Activation::sigmoid}},
                                 Loss::squared_error),
                        5);
}

TEST(Graphs, EndingInFlatten) {
  for (const std::int64_t channels : {3, 16})
    expect_like_reference(
        graph_of({2, 5, 4}, {Conv2dLayer{channels, 3, 1, 0, {}}, PoolLayer{PoolKind::max, 2, 1, 0}, FlattenLayer{}}),
        3);
}

TEST(Graphs, LenetOnOneAndTwoThreads) {
  expect_like_reference(lenet(), 16);
  expect_like_reference(lenet(), 16, nullptr, 2);
}

TEST(Graphs, TheSameInEitherActivationLayout) {
  const Plan blocked{R"({"backend":"cpu","version":1,"activations":"blocked","implementations":{}})"};
  const Plan channels_last{R"({"backend":"cpu","version":1,"activations":"channels_last","implementations":{}})"};
  for (const Graph& graph : {lenet(), small_net()}) {
    expect_like_reference(graph, 5, &blocked);
    expect_like_reference(graph, 5, &channels_last);
  }
}

// tests/nn checks the reference against finite differences; this test checks the backend against them directly.
TEST(Graphs, FiniteDifferences) {
  const ActivationLayer smooth{Activation::tanh};  // no kinks
  Model model(graph_of({3, 7, 6}, {Conv2dLayer{5, 3, 2, 1, {}}, smooth, PoolLayer{PoolKind::average, 3, 2, 1},
                                   Conv2dLayer{4, 2, 1, 1, {}}, smooth, FlattenLayer{}, LinearLayer{6, {}}, smooth,
                                   LinearLayer{5, {}}}),
              {.batch = 6});
  (void)model.step();
  const auto gradients = model.canonical_gradients();
  auto parameters = model.canonical_parameters();
  for (std::size_t i = 0; i < parameters.size(); i += 7) {
    constexpr float kStep = 1e-2f;
    const float kept = parameters[i];
    double loss[2];
    for (const int side : {0, 1}) {
      parameters[i] = kept + (side == 0 ? -kStep : kStep);
      model.replica->import_canonical(parameters);
      loss[side] = model.step().loss;
    }
    parameters[i] = kept;
    // Central difference: kStep² / 6 times the third derivative, plus rounding of the loss, about 1e-7 / kStep.
    EXPECT_NEAR((loss[1] - loss[0]) / (2 * kStep), gradients[i], 2e-4) << "parameter " << i;
  }
}

}  // namespace
}  // namespace troupe::cpu::testing
