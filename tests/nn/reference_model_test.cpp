#include "tests/nn/reference_model.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace troupe::nn {
namespace {

using core::Purpose;
using core::Random;

constexpr std::size_t kBatch = 3;

Graph graph_of(const std::vector<Layer>& layers, Shape input, Loss loss = Loss::softmax_cross_entropy) {
  auto graph = Graph::sequential("m", input, layers, loss);
  EXPECT_TRUE(graph) << graph.error().message;
  return std::move(graph.value());
}

/// (f(v + h) − f(v − h)) / 2h for every entry of `values`, against `gradient`. Truncation is O(h²), rounding 1e-16 / h.
template <class Loss>
void expect_gradient(std::vector<double>& values, const std::vector<double>& gradient, Loss loss, const char* what) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(values.size(), gradient.size());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double saved = values[i];
    values[i] = saved + kStep;
    const double up = loss();
    values[i] = saved - kStep;
    const double down = loss();
    values[i] = saved;
    EXPECT_NEAR(gradient[i], (up - down) / (2 * kStep), 1e-8) << what << " " << i;
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 1e-4) << what << ": the gradient is all but zero, the check would prove nothing";
}

void check_gradients(Graph graph, const ReferenceModel::Masks& masks = {}) {
  ReferenceModel model(std::move(graph));
  Random random(7, Purpose::test, 1);
  std::vector<double> images(kBatch * static_cast<std::size_t>(model.graph().input().size()));
  for (double& v : images)
    v = random.normal();  // no two values this close: finite differences cross no kink of relu or max
  for (double& v : model.parameters()) v = 0.5 * random.normal();
  std::vector<std::int32_t> labels(kBatch);
  for (auto& label : labels)
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.graph().output().size())));

  const auto result = model.run(std::span<const double>(images), labels, masks);
  const auto loss = [&] { return model.run(std::span<const double>(images), labels, masks).loss; };
  expect_gradient(model.parameters(), result.gradients, loss, "parameter");
  expect_gradient(images, result.input_gradient, loss, "input");
}

TEST(ReferenceModel, LinearGradientsMatchDifferences) {
  check_gradients(graph_of({LinearLayer{4, {}}, LinearLayer{3, {}}}, {5, 1, 1}));
}

TEST(ReferenceModel, LinearOverAnImageGradientsMatchDifferences) {
  check_gradients(graph_of({LinearLayer{3, {}}}, {2, 3, 2}));
}

TEST(ReferenceModel, ConvolutionGradientsMatchDifferences) {
  check_gradients(graph_of({Conv2dLayer{3, 2, 1, 0, {}}, LinearLayer{3, {}}}, {2, 4, 3}));
}

TEST(ReferenceModel, StridedPaddedConvolutionGradientsMatchDifferences) {
  check_gradients(graph_of({Conv2dLayer{2, 3, 2, 1, {}}, Conv2dLayer{3, 2, 1, 1, {}}, LinearLayer{3, {}}}, {2, 6, 5}));
}

TEST(ReferenceModel, GroupedConvolutionGradientsMatchDifferences) {
  Conv2dLayer grouped{6, 3, 2, 1, {}, 2};
  check_gradients(graph_of({grouped, LinearLayer{3, {}}}, {4, 5, 4}));
  Conv2dLayer depthwise{4, 2, 1, 0, {}, 4, false};
  check_gradients(graph_of({depthwise, LinearLayer{3, {}}}, {4, 3, 4}));
}

TEST(ReferenceModel, LrnGradientsMatchDifferences) {
  // alpha of 1 instead of 1e-4, so that the neighbours matter.
  check_gradients(graph_of({Conv2dLayer{7, 1, 1, 0, {}}, LrnLayer{5, 1.0, 0.75, 1}, LinearLayer{3, {}}}, {2, 2, 3}));
  check_gradients(graph_of({LinearLayer{4, {}}, LrnLayer{3, 2.0, 0.5, 2}, LinearLayer{3, {}}}, {5, 1, 1}));
}

TEST(ReferenceModel, BatchNormGradientsMatchDifferences) {
  check_gradients(graph_of(
      {Conv2dLayer{3, 2, 1, 0, {}, 1, false}, BatchNormLayer{}, ActivationLayer{Activation::tanh}, LinearLayer{3, {}}},
      {2, 4, 3}));
  check_gradients(graph_of({LinearLayer{4, {}}, BatchNormLayer{0.1, 0.1}, LinearLayer{3, {}}}, {5, 1, 1}));
  check_gradients(graph_of({BatchNormLayer{}, LinearLayer{3, {}}}, {2, 3, 2}));
}

TEST(ReferenceModel, MaxPoolGradientsMatchDifferences) {
  check_gradients(
      graph_of({Conv2dLayer{2, 1, 1, 0, {}}, PoolLayer{PoolKind::max, 2, 2, 0}, LinearLayer{3, {}}}, {2, 5, 4}));
  check_gradients(graph_of({PoolLayer{PoolKind::max, 3, 2, 1}, LinearLayer{3, {}}}, {2, 5, 6}));
}

TEST(ReferenceModel, AveragePoolGradientsMatchDifferences) {
  check_gradients(graph_of({PoolLayer{PoolKind::average, 2, 2, 0}, LinearLayer{3, {}}}, {2, 5, 4}));
  check_gradients(graph_of({PoolLayer{PoolKind::average, 3, 2, 1}, LinearLayer{3, {}}}, {2, 5, 6}));
}

TEST(ReferenceModel, ActivationGradientsMatchDifferences) {
  for (const auto kind : {Activation::relu, Activation::sigmoid, Activation::tanh})
    check_gradients(graph_of({LinearLayer{6, {}}, ActivationLayer{kind}, LinearLayer{3, {}}}, {4, 1, 1}));
}

TEST(ReferenceModel, FlattenGradientsMatchDifferences) {
  check_gradients(graph_of({Conv2dLayer{2, 2, 1, 0, {}}, FlattenLayer{}}, {1, 3, 3}));
}

TEST(ReferenceModel, SquaredErrorGradientsMatchDifferences) {
  check_gradients(graph_of({LinearLayer{4, {}}, ActivationLayer{Activation::sigmoid}, LinearLayer{3, {}},
                            ActivationLayer{Activation::sigmoid}},
                           {5, 1, 1}, Loss::squared_error));
}

TEST(ReferenceModel, DropoutGradientsMatchDifferencesUnderAGivenMask) {
  Graph graph = graph_of({LinearLayer{8, {}}, DropoutLayer{0.5}, LinearLayer{3, {}}}, {4, 1, 1});
  const auto masks = ReferenceModel(graph).dropout_masks(3, 11, kBatch);
  ASSERT_EQ(masks.size(), 1u);
  check_gradients(std::move(graph), masks);
}

TEST(ReferenceModel, DropoutKeepsAndScalesByItsMask) {
  ReferenceModel model(graph_of({DropoutLayer{0.75}, LinearLayer{2, {}}}, {3, 1, 1}));
  const std::vector<double> images{1, 2, 3};
  const std::vector<std::int32_t> labels{0};
  EXPECT_EQ(model.run(std::span<const double>(images), labels).activations[0], images);  // evaluation: identity
  const auto result = model.run(std::span<const double>(images), labels, {{0, {4, 0, 4}}});
  EXPECT_EQ(result.activations[0], (std::vector<double>{4, 0, 12}));
}

TEST(ReferenceModel, ConvolutionMatchesValuesByHand) {
  // One 2x2 filter [[1, 2], [3, 4]] and bias 10, stride 2, padding 1, over [[1, 2, 3], [4, 5, 6], [7, 8, 9]]; windows start
  // at rows and columns −1 and 1: 4·1; 3·2 + 4·3; 2·4 + 4·7; 5 + 2·6 + 3·8 + 4·9.
  ReferenceModel model(graph_of({Conv2dLayer{1, 2, 2, 1, {}}, FlattenLayer{}}, {1, 3, 3}));
  model.parameters() = {1, 2, 3, 4, 10};
  const std::vector<double> image{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto result = model.run(std::span<const double>(image), std::vector<std::int32_t>{0});
  EXPECT_EQ(result.outputs, (std::vector<double>{14, 28, 46, 87}));
}

TEST(ReferenceModel, GroupedConvolutionMatchesValuesByHand) {
  // Two groups of two channels in and one out, 1x1: y_0 = 1·x_0 + 2·x_1 + 10, y_1 = 3·x_2 + 4·x_3 + 20.
  ReferenceModel model(graph_of({Conv2dLayer{2, 1, 1, 0, {}, 2}, FlattenLayer{}}, {4, 1, 1}));
  EXPECT_EQ(model.graph().parameters()[0].shape, (std::vector<std::int64_t>{2, 2, 1, 1}));
  model.parameters() = {1, 2, 3, 4, 10, 20};
  const std::vector<double> image{1, 2, 3, 4};
  EXPECT_EQ(model.run(std::span<const double>(image), std::vector<std::int32_t>{0}).outputs,
            (std::vector<double>{15, 45}));
}

TEST(ReferenceModel, LrnMatchesValuesByHand) {
  // size 3, alpha 3, beta 0.5, k 1: x / sqrt(1 + Σ x²) over the channel and its neighbours.
  ReferenceModel model(graph_of({LrnLayer{3, 3, 0.5, 1}, LinearLayer{2, {}}}, {4, 1, 1}));
  const std::vector<double> image{1, 2, -2, 4};
  const auto y = model.run(std::span<const double>(image), std::vector<std::int32_t>{0}).activations[0];
  const std::vector<double> want{1 / std::sqrt(6.0), 2 / std::sqrt(10.0), -2 / 5.0, 4 / std::sqrt(21.0)};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(y[i], want[i]);
}

TEST(ReferenceModel, BatchNormMatchesValuesByHand) {
  // One channel, two samples of two pixels: 1, 3, 5, 7; mean 4, Σ (x − 4)² = 20, variance 5. With epsilon 4 the divisor is 3.
  // Weight 6, bias 1: y = 2 · (x − 4) + 1. Running, momentum ½: mean 0 → 2; variance 1 → 1 + ½ (20 / 3 − 1) = 23 / 6.
  ReferenceModel model(graph_of({BatchNormLayer{4, 0.5}, FlattenLayer{}}, {1, 1, 2}));
  model.parameters() = {6, 1};
  const std::vector<double> images{1, 3, 5, 7};
  const std::vector<std::int32_t> labels{0, 1};
  const auto trained = model.run(std::span<const double>(images), labels);
  EXPECT_EQ(trained.outputs, (std::vector<double>{-5, -1, 3, 7}));
  EXPECT_DOUBLE_EQ(trained.statistics[0], 2);
  EXPECT_DOUBLE_EQ(trained.statistics[1], 23.0 / 6);
  // Evaluation with running mean 2 and variance 12: divisor 4, y = 1.5 · (x − 2) + 1. The statistics do not change.
  model.statistics() = {2, 12};
  const auto evaluated = model.run(std::span<const double>(images), labels, {}, Normalise::by_running);
  EXPECT_EQ(evaluated.outputs, (std::vector<double>{-0.5, 2.5, 5.5, 8.5}));
  EXPECT_EQ(evaluated.statistics, (std::vector<double>{2, 12}));
}

TEST(ReferenceModel, PoolingMatchesValuesByHand) {
  const std::vector<double> image{1, 2, 3, 4, 5, 6, 7, 8, 9};  // 3x3
  const std::vector<std::int32_t> label{0};
  const auto pooled = [&](PoolKind kind) {
    ReferenceModel model(graph_of({PoolLayer{kind, 2, 2, 1}, LinearLayer{2, {}}}, {1, 3, 3}));
    return model.run(std::span<const double>(image), label).activations[0];
  };
  // Windows hold {1}, {2, 3}, {4, 7}, {5, 6, 8, 9}; padding is neither a maximum nor counted.
  EXPECT_EQ(pooled(PoolKind::max), (std::vector<double>{1, 3, 7, 9}));
  EXPECT_EQ(pooled(PoolKind::average), (std::vector<double>{1, 2.5, 5.5, 7}));
}

TEST(ReferenceModel, MaxPoolIgnoresPaddingBelowNegativeValues) {
  ReferenceModel model(graph_of({PoolLayer{PoolKind::max, 2, 2, 1}, LinearLayer{2, {}}}, {1, 1, 1}));
  const std::vector<double> image{-3};
  EXPECT_EQ(model.run(std::span<const double>(image), std::vector<std::int32_t>{0}).activations[0],
            std::vector<double>{-3});
}

TEST(ReferenceModel, LossesMatchValuesByHand) {
  // One linear layer with zero weights and biases (1, 2, 3), two samples with labels 0 and 2.
  const auto run = [](Loss loss) {
    ReferenceModel model(graph_of({LinearLayer{3, {}}}, {1, 1, 1}, loss));
    model.parameters() = {0, 0, 0, 1, 2, 3};
    return model.run(std::span<const double>(std::vector<double>{5, 6}), std::vector<std::int32_t>{0, 2});
  };
  // softmax(1, 2, 3) = (0.09003057, 0.24472847, 0.66524096): −log gives 2.40760596 and 0.40760596, mean 1.40760596.
  const auto cross = run(Loss::softmax_cross_entropy);
  EXPECT_NEAR(cross.loss, 1.40760596, 1e-8);
  EXPECT_NEAR(cross.gradients[3], 0.09003057 - 0.5, 1e-8);  // mean of p − onehot
  EXPECT_NEAR(cross.gradients[4], 0.24472847, 1e-8);
  EXPECT_NEAR(cross.gradients[5], 0.66524096 - 0.5, 1e-8);
  // ½(0 + 4 + 9) = 6.5 and ½(1 + 4 + 4) = 4.5, mean 5.5; bias gradients (1, 2, 3) − (½, 0, ½).
  const auto squared = run(Loss::squared_error);
  EXPECT_DOUBLE_EQ(squared.loss, 5.5);
  EXPECT_DOUBLE_EQ(squared.gradients[3], 0.5);
  EXPECT_DOUBLE_EQ(squared.gradients[4], 2);
  EXPECT_DOUBLE_EQ(squared.gradients[5], 2.5);
  EXPECT_EQ(squared.top1, 1);  // class 2 is the greatest for both
  EXPECT_EQ(squared.top5, 0);  // fewer than five classes
}

TEST(ReferenceModel, RanksBreakTiesTowardsTheLowerClass) {
  const std::vector<double> outputs{2, 5, 2, 9};
  EXPECT_EQ(reference_rank(outputs, 3), 0);
  EXPECT_EQ(reference_rank(outputs, 1), 1);
  EXPECT_EQ(reference_rank(outputs, 0), 2);
  EXPECT_EQ(reference_rank(outputs, 2), 3);
}

}  // namespace
}  // namespace troupe::nn
