// Every layer against the double-precision reference: outputs, loss, all gradients. Each net has a parameterised layer before
// the layer under test, so that its data gradient is checked too. Tolerances are relative to a tensor's largest value.
#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

struct Channels {
  std::int64_t in, out;
};
void PrintTo(const Channels& c, std::ostream* out) { *out << c.in << " to " << c.out; }

class ConvolutionLayer : public BackendTestOver<Channels> {};

TEST_P(ConvolutionLayer, MatchesReferenceForOddShapesStridesAndPaddings) {
  const auto [in, out] = param();
  struct Window {
    std::int64_t kernel, stride, padding;
  };
  for (const auto& [kernel, stride, padding] : {Window{3, 1, 0}, {3, 2, 1}, {5, 1, 2}, {1, 1, 0}, {2, 3, 1}}) {
    SCOPED_TRACE(::testing::Message() << "kernel " << kernel << " stride " << stride << " padding " << padding);
    expect_like_reference(
        backend(),
        graph_of({2, 11, 8}, {Conv2dLayer{in, 1, 1, 0, {}}, Conv2dLayer{out, kernel, stride, padding, {}},
                              FlattenLayer{}, LinearLayer{7, {}}}),
        3);
  }
}

TEST_P(ConvolutionLayer, MatchesReferenceAsFirstLayer) {
  const auto [in, out] = param();
  expect_like_reference(backend(),
                        graph_of({in, 9, 10}, {Conv2dLayer{out, 3, 1, 1, {}}, FlattenLayer{}, LinearLayer{6, {}}}), 5);
}

TEST_P(ConvolutionLayer, MatchesReferenceWithoutABias) {
  const auto [in, out] = param();
  expect_like_reference(
      backend(),
      graph_of({in, 6, 7}, {Conv2dLayer{in, 1, 1, 0, {}, 1, false}, Conv2dLayer{out, 3, 2, 1, {}, 1, false},
                            ActivationLayer{Activation::relu}, FlattenLayer{}, LinearLayer{5, {}}}),
      4);
}

TROUPE_OVER_BACKENDS_AND(ConvolutionLayer, ::testing::Values(Channels{1, 3}, Channels{3, 20}, Channels{20, 50},
                                                             Channels{50, 16}, Channels{16, 32}, Channels{1, 1}));

/// Channels in and out, groups.
struct Groups {
  std::int64_t in, out, groups;
};
void PrintTo(const Groups& g, std::ostream* out) { *out << g.in << " to " << g.out << " in " << g.groups; }

class GroupedConvolution : public BackendTestOver<Groups> {};

TEST_P(GroupedConvolution, MatchesReferenceForOddShapesStridesAndPaddings) {
  const auto [in, out, groups] = param();
  struct Window {
    std::int64_t kernel, stride, padding;
  };
  for (const std::int64_t batch : {1, 5})
    for (const auto& [kernel, stride, padding] : {Window{3, 1, 1}, {5, 2, 2}, {1, 1, 0}, {2, 3, 1}}) {
      SCOPED_TRACE(::testing::Message() << "kernel " << kernel << " stride " << stride << " padding " << padding);
      expect_like_reference(
          backend(),
          graph_of({2, 9, 7}, {Conv2dLayer{in, 1, 1, 0, {}}, Conv2dLayer{out, kernel, stride, padding, {}, groups},
                               ActivationLayer{Activation::relu}, LinearLayer{7, {}}}),
          batch);
    }
}

TEST_P(GroupedConvolution, MatchesReferenceAsFirstLayerOnTwoThreads) {
  const auto [in, out, groups] = param();
  expect_like_reference(
      backend(),
      graph_of({in, 8, 9}, {Conv2dLayer{out, 3, 1, 1, {}, groups, false}, FlattenLayer{}, LinearLayer{6, {}}}), 5,
      nullptr, 2);
}

TROUPE_OVER_BACKENDS_AND(GroupedConvolution,
                         ::testing::Values(Groups{4, 6, 2}, Groups{6, 3, 3}, Groups{32, 64, 2}, Groups{96, 32, 2},
                                           Groups{5, 5, 5}, Groups{16, 16, 16}, Groups{48, 80, 2}));

class Pooling : public BackendTestOver<PoolLayer> {};

TEST_P(Pooling, MatchesReferenceBehindPlainAndBlockedConvolutions) {
  for (const std::int64_t channels : {1, 3, 20, 32})
    expect_like_reference(
        backend(),
        graph_of({2, 10, 9}, {Conv2dLayer{channels, 3, 1, 1, {}}, param(), FlattenLayer{}, LinearLayer{6, {}}}), 3);
}

TEST_P(Pooling, MatchesReferenceAsFirstLayer) {
  expect_like_reference(backend(), graph_of({3, 10, 9}, {param(), Conv2dLayer{4, 2, 1, 0, {}}, FlattenLayer{}}), 3);
}

TROUPE_OVER_BACKENDS_AND(Pooling,
                         ::testing::Values(PoolLayer{PoolKind::max, 2, 2, 0}, PoolLayer{PoolKind::max, 3, 2, 1},
                                           PoolLayer{PoolKind::max, 3, 1, 0}, PoolLayer{PoolKind::average, 2, 2, 0},
                                           PoolLayer{PoolKind::average, 3, 2, 1}, PoolLayer{PoolKind::average, 3, 1, 2},
                                           PoolLayer{PoolKind::max, 3, 2, 0, true},
                                           PoolLayer{PoolKind::max, 2, 3, 1, true},
                                           PoolLayer{PoolKind::average, 3, 2, 1, true}));

class AdaptivePooling : public BackendTestOver<std::int64_t> {};

TEST_P(AdaptivePooling, MatchesReferenceForEvenAndUnevenWindows) {
  for (const std::int64_t channels : {3, 32})
    expect_like_reference(backend(),
                          graph_of({2, 12, 9}, {Conv2dLayer{channels, 3, 1, 1, {}}, AdaptiveAveragePoolLayer{param()},
                                                ActivationLayer{Activation::tanh}, LinearLayer{6, {}}}),
                          3);
}

TROUPE_OVER_BACKENDS_AND(AdaptivePooling, ::testing::Values(1, 3, 4, 5, 9));

class Activations : public BackendTestOver<Activation> {};

TEST_P(Activations, MatchReferenceFusedWithConvolutionAndLinear) {
  const ActivationLayer f{param()};
  for (const std::int64_t channels : {5, 16})
    expect_like_reference(
        backend(),
        graph_of({2, 6, 5}, {Conv2dLayer{channels, 3, 1, 0, {}}, f, Conv2dLayer{channels, 2, 1, 0, {}}, f,
                             FlattenLayer{}, LinearLayer{37, {}}, f, LinearLayer{9, {}}, f}),
        7);
}

TEST_P(Activations, MatchReferenceOnTheirOwn) {
  const ActivationLayer f{param()};
  for (const std::int64_t channels : {5, 16})
    expect_like_reference(
        backend(),
        graph_of({2, 6, 6}, {f, Conv2dLayer{channels, 3, 1, 0, {}}, PoolLayer{PoolKind::average, 2, 2, 0}, f,
                             FlattenLayer{}, f, LinearLayer{11, {}}, f, f, LinearLayer{9, {}}}),
        4);
}

TROUPE_OVER_BACKENDS_AND(Activations, ::testing::Values(Activation::relu, Activation::sigmoid, Activation::tanh));

class Layers : public BackendTest {};
TROUPE_OVER_BACKENDS(Layers);

TEST_P(Layers, LinearMatchesReferenceForOddSizesAndABatchOfOne) {
  for (const std::int64_t batch : {1, 3, 64})
    for (const std::int64_t width : {1, 5, 16, 100})
      expect_like_reference(backend(), graph_of({13, 1, 1}, {LinearLayer{width, {}}, LinearLayer{3, {}}}), batch);
}

TEST_P(Layers, LinearOverImagesMatchesReference) {
  expect_like_reference(backend(), graph_of({3, 5, 4}, {LinearLayer{8, {}}}), 6);
}

TEST_P(Layers, ConvolutionBehindAVectorMatchesReference) {
  expect_like_reference(
      backend(), graph_of({6, 1, 1}, {LinearLayer{8, {}}, Conv2dLayer{5, 1, 1, 0, {}}, Conv2dLayer{6, 3, 1, 1, {}}}),
      3);
}

TEST_P(Layers, DropoutMatchesReferenceBehindLinearAndConvolution) {
  expect_like_reference(
      backend(),
      graph_of({3, 8, 8}, {Conv2dLayer{20, 3, 1, 0, {}}, ActivationLayer{Activation::relu}, DropoutLayer{0.3},
                           Conv2dLayer{32, 3, 1, 0, {}}, DropoutLayer{0.5}, FlattenLayer{}, LinearLayer{30, {}},
                           ActivationLayer{Activation::sigmoid}, DropoutLayer{0.5}, LinearLayer{10, {}}}),
      9);
}

TEST_P(Layers, DropoutOfTheImagesMatchesReference) {
  expect_like_reference(backend(), graph_of({3, 4, 4}, {DropoutLayer{0.2}, LinearLayer{5, {}}}), 3);
}

TEST_P(Layers, SquaredErrorOnSigmoidsMatchesReference) {
  expect_like_reference(backend(),
                        graph_of({12, 1, 1},
                                 {LinearLayer{9, {}}, ActivationLayer{Activation::sigmoid}, LinearLayer{4, {}},
                                  ActivationLayer{Activation::sigmoid}},
                                 Loss::squared_error),
                        5);
}

TEST_P(Layers, GraphEndingInFlattenMatchesReference) {
  for (const std::int64_t channels : {3, 16})
    expect_like_reference(
        backend(),
        graph_of({2, 5, 4}, {Conv2dLayer{channels, 3, 1, 0, {}}, PoolLayer{PoolKind::max, 2, 1, 0}, FlattenLayer{}}),
        3);
}

TEST_P(Layers, LenetMatchesReferenceOnOneAndTwoThreads) {
  expect_like_reference(backend(), lenet(), 16);
  expect_like_reference(backend(), lenet(), 16, nullptr, 2);
}

}  // namespace
}  // namespace troupe::nn::testing
