// Forward and backward in 16 bits beside the same in float32. bfloat16 has 8 significant bits, so a value is off by up to 1/256; float16 has 11.
// Sums are float32, so errors of terms average out.
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

class HalfPrecision : public BackendTestOver<Precision> {
 protected:
  void SetUp() override {
    const auto precisions = backend().capabilities().precisions;
    if (std::ranges::find(precisions, param()) == precisions.end())
      GTEST_SKIP() << backend().name() << " does not compute in " << name_of(param()) << " on this machine";
  }
  /// The errors of float16 are an eighth of those of bfloat16; the values that rounding moves across the zero of relu are fewer, too.
  [[nodiscard]] static double scaled(double tolerance) {
    return param() == Precision::fp16 ? tolerance / 5 : tolerance;
  }
};

TEST_P(HalfPrecision, OneStepIsNearThatOfFloat32) {
  for (const Graph& graph : {lenet(), small_net(), mixed_net()}) {
    SCOPED_TRACE(graph.name());
    Model full(backend(), graph, {.batch = 8});
    Model half(backend(), graph, {.batch = 8, .precision = param()});
    const auto expected = full.step();
    const auto result = half.step();
    EXPECT_NEAR(result.loss, expected.loss, scaled(0.01) * expected.loss);
    const double apart = distance(half.canonical_gradients(), full.canonical_gradients());
    EXPECT_LT(apart, scaled(0.06));  // rounding also moves values across the zero of relu
    EXPECT_GT(apart, 0) << "computed in float32";
    if (const auto statistics = full.canonical_statistics(); !statistics.empty()) {
      EXPECT_LT(distance(half.canonical_statistics(), statistics), scaled(0.01));
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
          Model half(backend(), graph, {.batch = 3, .precision = param(), .measure = false});
          EXPECT_NEAR(half.step().loss, full.step().loss, scaled(0.05));
          EXPECT_LT(distance(half.canonical_gradients(), full.canonical_gradients()), scaled(0.06));
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
        Model half(backend(), graph, {.batch = 3, .precision = param(), .measure = false});
        for (int step = 0; step < 2; ++step) {  // the second one finds memory that the first one used
          (void)full.step();
          (void)half.step();
          EXPECT_LT(distance(half.canonical_gradients(), full.canonical_gradients()), scaled(0.06));
        }
      }
}

/// In 16 bits a GPU's convolution may sum up the statistics of the batch norm behind it, from sums of squares: of values about 0, and of a
/// channel whose mean is many deviations away, as images that hardly vary make it.
TEST_P(HalfPrecision, BatchNormsBehindConvolutionsAreNearThoseOfFloat32) {
  const auto graph = graph_of(
      {3, 8, 8}, {Conv2dLayer{64, 3, 1, 1, {}, 1, false}, BatchNormLayer{}, ActivationLayer{},
                  Conv2dLayer{64, 3, 2, 1, {}, 1, false}, BatchNormLayer{}, ActivationLayer{},
                  Conv2dLayer{24, 1, 1, 0, {}, 1, false}, BatchNormLayer{}, FlattenLayer{}, LinearLayer{5, {}}});
  for (const float level : {0.0F, 3.0F}) {
    SCOPED_TRACE(level);
    Model full(backend(), graph, {.batch = 16});
    Model half(backend(), graph, {.batch = 16, .precision = param(), .deterministic = false});
    for (Model* model : {&full, &half})
      for (float& pixel : model->images) pixel += level;
    const auto expected = full.step();
    EXPECT_NEAR(half.step().loss, expected.loss, scaled(0.02) * expected.loss);
    EXPECT_LT(distance(half.canonical_gradients(), full.canonical_gradients()), scaled(0.15));
    EXPECT_LT(distance(half.canonical_statistics(), full.canonical_statistics()), scaled(0.01));
    const auto evaluated = half.replica->evaluate(half.batch()), wanted = full.replica->evaluate(full.batch());
    ASSERT_TRUE(evaluated && wanted);
    EXPECT_NEAR(evaluated->loss, wanted->loss, scaled(0.02) * wanted->loss);
  }
}

TEST_P(HalfPrecision, TenStepsFollowThoseOfFloat32) {
  for (const Graph& graph : {lenet(), mixed_net()}) {
    SCOPED_TRACE(graph.name());
    Model full(backend(), graph, {.batch = 16});
    Model half(backend(), graph, {.batch = 16, .precision = param()});
    for (std::uint64_t lease = 0; lease < 10; ++lease) {
      EXPECT_NEAR(half.step(lease).loss, full.step(lease).loss, scaled(0.03)) << "step " << lease;
      half.momentum_step(lease);
      full.momentum_step(lease);
    }
  }
}

TEST_P(HalfPrecision, ParametersStayFloat32) {
  Model model(backend(), lenet(), {.batch = 4, .precision = param()});
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
  Model half(backend(), mixed_net(), {.batch = 8, .precision = param()});
  const auto expected = full.replica->evaluate(full.batch());
  const auto result = half.replica->evaluate(half.batch());
  ASSERT_TRUE(expected && result);
  EXPECT_NEAR(result->loss, expected->loss, scaled(0.01) * expected->loss);
}

TROUPE_OVER_BACKENDS_AND(HalfPrecision, ::testing::Values(Precision::bf16, Precision::fp16));

/// Replicas of one set of options that begin with the same state of steps compute the same bits, whatever they did before.
TEST_P(HalfPrecision, StateOfStepsGoesOverToAnotherReplica) {
  Model first(backend(), mixed_net(), {.batch = 4, .precision = param(), .measure = false});
  for (std::uint64_t lease = 0; lease < 3; ++lease) first.momentum_step(lease);
  Model second(backend(), mixed_net(), {.batch = 4, .precision = param(), .measure = false});
  second.replica->kernels().copy(second.replica->parameters(), first.replica->parameters());
  second.replica->kernels().copy(second.replica->statistics(), first.replica->statistics());
  second.replica->parameters_written();
  second.replica->set_state_of_steps(first.replica->state_of_steps());
  EXPECT_EQ(first.step(7).loss, second.step(7).loss);
  EXPECT_EQ(first.canonical_gradients(), second.canonical_gradients());
  EXPECT_EQ(first.replica->state_of_steps(), second.replica->state_of_steps());
}

class Tf32 : public BackendTest {};

// 11 significant bits of the factors; everything else is float32.
TEST_P(Tf32, OneStepInTf32IsNearThatOfFloat32) {
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

TROUPE_OVER_BACKENDS(Tf32);

}  // namespace
}  // namespace troupe::nn::testing
