// Forward and backward in bfloat16 beside the same in float32. bfloat16 has 8 significant bits, so a value is off by up to 1/256; sums are
// float32, so errors of terms average out.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

/// ‖a − b‖ / ‖b‖
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

/// Convolutions of good and of odd widths, groups, all kinds of pooling, both normalisations, a sum, joined channels.
Graph mixed_net() {
  return graph_of_nodes(
      {3, 16, 16},
      {{Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}}, "conv1", {}},
       {BatchNormLayer{}, "bn1", {"conv1"}},
       {ActivationLayer{}, "relu1", {"bn1"}},
       {Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}, .groups = 2}, "conv2", {"relu1"}},
       {AddLayer{}, "add", {"conv2", "relu1"}},
       {ActivationLayer{}, "relu2", {"add"}},
       {PoolLayer{PoolKind::max, 2, 2, 0}, "pool1", {"relu2"}},
       {Conv2dLayer{.outputs = 20, .kernel = 1, .weight = {}}, "conv3", {"pool1"}},
       {LrnLayer{}, "norm", {"conv3"}},
       {ConcatLayer{}, "concat", {"norm", "pool1"}},
       {PoolLayer{PoolKind::average, 2, 2, 0}, "pool2", {"concat"}},
       {DropoutLayer{0.3}, "drop", {"pool2"}},
       {AdaptiveAveragePoolLayer{3}, "pool3", {"drop"}},
       {FlattenLayer{}, "flatten", {"pool3"}},
       {LinearLayer{24, {}}, "fc1", {"flatten"}},
       {ActivationLayer{Activation::tanh}, "tanh", {"fc1"}},
       {LinearLayer{10, {}}, "fc2", {"tanh"}}});
}

class HalfPrecision : public BackendTest {
 protected:
  void SetUp() override {
    const auto precisions = backend().capabilities().precisions;
    if (std::ranges::find(precisions, Precision::bf16) == precisions.end())
      GTEST_SKIP() << backend().name() << " does not compute in bf16 on this machine";
  }
};

TEST_P(HalfPrecision, OneStepIsNearThatOfFloat32) {
  for (const Graph& graph : {lenet(), small_net(), mixed_net()}) {
    SCOPED_TRACE(graph.name());
    Model full(backend(), graph, {.batch = 8});
    Model half(backend(), graph, {.batch = 8, .precision = Precision::bf16});
    const auto expected = full.step();
    const auto result = half.step();
    EXPECT_NEAR(result.loss, expected.loss, 0.01 * expected.loss);
    const double apart = distance(half.canonical_gradients(), full.canonical_gradients());
    EXPECT_LT(apart, 0.06);  // rounding also moves values across the zero of relu
    EXPECT_GT(apart, 0) << "computed in float32";
    if (const auto statistics = full.canonical_statistics(); !statistics.empty()) {
      EXPECT_LT(distance(half.canonical_statistics(), statistics), 0.01);
    }
  }
}

/// Sums over an odd number of channels, forward and backward: bfloat16 is computed in pairs.
TEST_P(HalfPrecision, ConvolutionsOfOddChannelsAreNearThoseOfFloat32) {
  for (const std::int64_t in : {1, 3, 5, 17})
    for (const std::int64_t out : {2, 3, 5, 17, 32})
      for (const std::int64_t kernel : {1, 3}) {
        SCOPED_TRACE(::testing::Message() << in << " to " << out << " channels, kernel " << kernel);
        for (const std::int64_t stride : {1, 2}) {
          const auto graph =
              graph_of({2, 9, 10}, {Conv2dLayer{in, 3, 1, 1, {}}, Conv2dLayer{out, kernel, stride, 0, {}},
                                    FlattenLayer{}, LinearLayer{4, {}}});
          Model full(backend(), graph, {.batch = 3, .measure = false});
          Model half(backend(), graph, {.batch = 3, .precision = Precision::bf16, .measure = false});
          EXPECT_NEAR(half.step().loss, full.step().loss, 0.05);
          EXPECT_LT(distance(half.canonical_gradients(), full.canonical_gradients()), 0.06);
        }
      }
}

TEST_P(HalfPrecision, GradientsOfImagesNarrowerThanTheStrideAreNearThoseOfFloat32) {
  for (const auto& [in, out] : {std::pair{3, 4}, {16, 32}})
    for (const std::int64_t width : {1, 2})
      for (const std::int64_t stride : {2, 3}) {
        SCOPED_TRACE(::testing::Message()
                     << in << " to " << out << " channels, width " << width << ", stride " << stride);
        const auto graph = graph_of({2, 4, width}, {Conv2dLayer{in, 3, 1, 1, {}}, Conv2dLayer{out, 3, stride, 1, {}},
                                                    FlattenLayer{}, LinearLayer{4, {}}});
        Model full(backend(), graph, {.batch = 3, .measure = false});
        Model half(backend(), graph, {.batch = 3, .precision = Precision::bf16, .measure = false});
        for (int step = 0; step < 2; ++step) {  // the second one finds memory that the first one used
          (void)full.step();
          (void)half.step();
          EXPECT_LT(distance(half.canonical_gradients(), full.canonical_gradients()), 0.06);
        }
      }
}

TEST_P(HalfPrecision, TenStepsFollowThoseOfFloat32) {
  for (const Graph& graph : {lenet(), mixed_net()}) {
    SCOPED_TRACE(graph.name());
    Model full(backend(), graph, {.batch = 16});
    Model half(backend(), graph, {.batch = 16, .precision = Precision::bf16});
    for (std::uint64_t lease = 0; lease < 10; ++lease) {
      EXPECT_NEAR(half.step(lease).loss, full.step(lease).loss, 0.03) << "step " << lease;
      half.momentum_step(lease);
      full.momentum_step(lease);
    }
  }
}

// 11 significant bits of the factors; everything else is float32.
TEST_P(HalfPrecision, OneStepInTf32IsNearThatOfFloat32) {
  const auto precisions = backend().capabilities().precisions;
  if (std::ranges::find(precisions, Precision::tf32) == precisions.end())
    GTEST_SKIP() << backend().name() << " does not compute in tf32";
  Model full(backend(), mixed_net(), {.batch = 8});
  Model rounded(backend(), mixed_net(), {.batch = 8, .precision = Precision::tf32});
  EXPECT_NEAR(rounded.step().loss, full.step().loss, 2e-3);
  const double apart = distance(rounded.canonical_gradients(), full.canonical_gradients());
  EXPECT_LT(apart, 0.01);
  EXPECT_GT(apart, 0) << "computed in float32";
}

TEST_P(HalfPrecision, ParametersStayFloat32) {
  Model model(backend(), lenet(), {.batch = 4, .precision = Precision::bf16});
  const auto canonical = random_floats(model.replica->layout()->canonical_floats(), 0.1, 7);
  std::vector<float> back(canonical.size());
  auto given = canonical;
  model.replica->import_canonical(given);
  (void)model.step();
  model.replica->export_canonical(back);
  EXPECT_EQ(back, canonical);
}

TEST_P(HalfPrecision, EvaluationMatchesTheRunningStatisticsOfFloat32) {
  Model full(backend(), mixed_net(), {.batch = 8});
  Model half(backend(), mixed_net(), {.batch = 8, .precision = Precision::bf16});
  const auto expected = full.replica->evaluate(full.batch());
  const auto result = half.replica->evaluate(half.batch());
  ASSERT_TRUE(expected && result);
  EXPECT_NEAR(result->loss, expected->loss, 0.01 * expected->loss);
}

TROUPE_OVER_BACKENDS(HalfPrecision);

}  // namespace
}  // namespace troupe::nn::testing
