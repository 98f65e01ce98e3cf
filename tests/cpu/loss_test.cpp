#include "cpu/layers/loss.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/cpu/model.hpp"
#include "tests/nn/reference_layers.hpp"

namespace troupe::cpu::testing {
namespace {

TEST(Loss, SoftmaxCrossEntropyMatchesValuesByHand) {
  // z = (0, ln 3): softmax (1/4, 3/4). Label 0: loss ln 4, gradient (-3/4, 3/4) / 2 samples; label 1: ln 4/3, (1/4, -1/4) / 2.
  const std::vector<float> z{0, std::log(3.0f), 0, std::log(3.0f)};
  std::vector<float> g(4);
  const auto result =
      compute_loss(nn::Loss::softmax_cross_entropy, z.data(), std::vector<std::int32_t>{0, 1}, 2, 2, g.data()).value();
  EXPECT_NEAR(result.loss, (std::log(4.0) + std::log(4.0 / 3)) / 2, 1e-6);
  EXPECT_EQ(result.top1, 1);
  EXPECT_EQ(result.top5, 0);  // fewer than five classes
  const float want[] = {-0.375f, 0.375f, 0.125f, -0.125f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(g[static_cast<std::size_t>(i)], want[i], 1e-6);
}

/// torch.nn.functional.cross_entropy(z, torch.tensor([1, 0]), label_smoothing=0.1), and z.grad, of PyTorch 1.13 in double.
TEST(Loss, SmoothedLabelsGivePytorchsNumbers) {
  const std::vector<float> z{0.5F, -1, 2, 0.25F, 3, 1, -2, 0};
  const double want[] = {0.064617413,  -0.445292779, 0.333116265,  0.047559101,
                         -0.042987746, 0.044274810,  -0.009673349, 0.008386285};
  std::vector<float> g(z.size());
  const auto result =
      compute_loss(nn::Loss::softmax_cross_entropy, z.data(), std::vector<std::int32_t>{1, 0}, 2, 4, g.data(), 0.1)
          .value();
  EXPECT_NEAR(result.loss, 1.825522181, 1e-6);
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], want[i], 1e-7) << i;
}

/// A compiled step against the plain reference: training smooths the label, evaluation does not.
TEST(Loss, SmoothingIsForTrainingOnly) {
  constexpr double kSmoothing = 0.2;
  constexpr std::int64_t kBatch = 6;
  Model model(small_net(), {.batch = kBatch, .label_smoothing = kSmoothing});
  const auto trained = model.step();
  const auto evaluated = model.replica->evaluate(model.batch()).value();
  const auto outputs = model.replica->outputs();
  const auto classes = outputs.size() / static_cast<std::size_t>(kBatch);
  double smoothed = 0, plain = 0;
  std::vector<double> gradient(classes);
  for (std::size_t s = 0; s < static_cast<std::size_t>(kBatch); ++s) {
    const std::vector<double> z(outputs.begin() + static_cast<std::ptrdiff_t>(s * classes),
                                outputs.begin() + static_cast<std::ptrdiff_t>((s + 1) * classes));
    smoothed +=
        nn::reference::loss_and_gradient(nn::Loss::softmax_cross_entropy, z, model.labels[s], gradient, kSmoothing);
    double sum = 0;
    for (const double entry : gradient) sum += entry;
    EXPECT_NEAR(sum, 0, 1e-12);  // both distributions sum to 1
    plain += nn::reference::loss_and_gradient(nn::Loss::softmax_cross_entropy, z, model.labels[s], gradient);
  }
  EXPECT_NEAR(trained.loss, smoothed / kBatch, 1e-5);
  EXPECT_NEAR(evaluated.loss, plain / kBatch, 1e-5);
  EXPECT_GT(std::abs(smoothed - plain) / kBatch, 1e-3);
}

TEST(Loss, SquaredErrorMatchesValuesByHand) {
  // ½ (0.5² + 0.25² + 1²) with z = (0.5, 0.75, 1), label 1.
  const std::vector<float> z{0.5f, 0.75f, 1.0f};
  std::vector<float> g(3);
  const auto result =
      compute_loss(nn::Loss::squared_error, z.data(), std::vector<std::int32_t>{1}, 1, 3, g.data()).value();
  EXPECT_DOUBLE_EQ(result.loss, 0.5 * (0.25 + 0.0625 + 1.0));
  EXPECT_EQ(g, (std::vector<float>{0.5f, -0.25f, 1.0f}));
}

TEST(Loss, MatchesReferenceForManySamplesAndClasses) {
  constexpr std::int64_t kSamples = 150;
  constexpr std::int64_t kClasses = 11;
  const auto z = random_floats(kSamples * kClasses, 3.0, 1);
  const auto labels = random_labels(kSamples, kClasses, 2);
  std::vector<float> g(z.size());
  const auto result =
      compute_loss(nn::Loss::softmax_cross_entropy, z.data(), labels, kSamples, kClasses, g.data()).value();
  double loss = 0;
  std::int64_t top1 = 0, top5 = 0;
  for (std::int64_t s = 0; s < kSamples; ++s) {
    std::vector<double> row(z.begin() + s * kClasses, z.begin() + (s + 1) * kClasses);
    const auto label = labels[static_cast<std::size_t>(s)];
    double sum = 0;
    for (const double value : row) sum += std::exp(value);
    loss += std::log(sum) - row[static_cast<std::size_t>(label)];
    top1 += nn::reference_rank(row, label) == 0;
    top5 += nn::reference_rank(row, label) < 5;
    for (std::int64_t c = 0; c < kClasses; ++c)
      EXPECT_NEAR(g[static_cast<std::size_t>(s * kClasses + c)],
                  (std::exp(row[static_cast<std::size_t>(c)]) / sum - (c == label)) / kSamples, 1e-8);
  }
  EXPECT_NEAR(result.loss, loss / kSamples, 1e-6);
  EXPECT_EQ(result.top1, top1);
  EXPECT_EQ(result.top5, top5);
}

TEST(Loss, TiesGoToTheLowerClassAndNanIsNoHit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> z{1,        1, 0, 0, 0, 0, /**/ 1,   1,   0,   0,   0,   0,
                             /**/ nan, 1, 2, 0, 0, 0, /**/ nan, nan, nan, nan, nan, nan};
  std::vector<float> g(z.size());
  const auto result =
      compute_loss(nn::Loss::softmax_cross_entropy, z.data(), std::vector<std::int32_t>{0, 1, 2, 5}, 4, 6, g.data())
          .value();
  EXPECT_EQ(result.top1, 1);  // only row 0; misses: an equal before it, a NaN before it, a NaN itself
  EXPECT_EQ(result.top5, 3);
  EXPECT_TRUE(std::isnan(result.loss));
}

TEST(Loss, LabelsOutsideTheClassesAreDataErrors) {
  const std::vector<float> z(12, 0.0f);
  std::vector<float> g(12);
  for (const std::int32_t wrong : {-1, 4, 1000}) {
    const auto result =
        compute_loss(nn::Loss::squared_error, z.data(), std::vector<std::int32_t>{0, 3, wrong}, 3, 4, g.data());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, core::Errc::data);
    EXPECT_NE(result.error().message.find("sample 2"), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find(std::to_string(wrong)), std::string::npos);
    EXPECT_NE(result.error().message.find("4 classes"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::cpu::testing
