// fp16 with a loss scale that follows the gradients (gpu/loss_scale.hpp).
#include "gpu/loss_scale.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

std::vector<float> copy_of(core::Span values) { return {values.begin(), values.end()}; }
std::uint64_t state_at(unsigned exponent) {
  LossScale scale;
  while (scale.value() > std::ldexp(1.0F, static_cast<int>(exponent))) (void)scale.fall();
  return scale.state();
}

TEST(LossScales, BeginAtTwoToTheSixteenAndHalve) {
  LossScale scale;
  EXPECT_EQ(scale.value(), 65536);
  EXPECT_TRUE(scale.fall());
  EXPECT_EQ(scale.value(), 32768);
  while (scale.fall()) {
  }
  EXPECT_EQ(scale.value(), 1);
  EXPECT_FALSE(scale.fall());
}

TEST(LossScales, DoubleAfterTwoThousandGoodStepsInARow) {
  LossScale scale;
  for (int step = 0; step < 1999; ++step) scale.good();
  EXPECT_EQ(scale.value(), 65536);
  EXPECT_TRUE(scale.fall());  // begins to count again
  for (int step = 0; step < 1999; ++step) scale.good();
  EXPECT_EQ(scale.value(), 32768);
  scale.good();
  EXPECT_EQ(scale.value(), 65536);
  for (int step = 0; step < 2000 * 20; ++step) scale.good();
  EXPECT_EQ(scale.value(), 16777216) << "2^24 is the most";
}

TEST(LossScales, StateIsAllOfIt) {
  LossScale scale;
  (void)scale.fall();
  for (int step = 0; step < 1999; ++step) scale.good();
  LossScale other;
  other.set_state(scale.state());
  scale.good();
  other.good();
  EXPECT_EQ(other.value(), 65536);
  EXPECT_EQ(other.state(), scale.state());
}

TEST(LossScales, StateThatNoneHadIsIgnored) {
  for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{26} << 32, (std::uint64_t{17} << 32) | 2000}) {
    LossScale scale;
    scale.set_state(bad);
    EXPECT_EQ(scale.state(), LossScale().state());
  }
}

/// A batch of one whose label is wrong: the loss gradient is nearly 1, which times 65536 is beyond the greatest number of fp16, 65504.
nn::Graph overflowing_net() {
  using namespace nn;
  return *Graph::build("overflowing", {3, 6, 6},
                       {{Conv2dLayer{8, 3, 1, 1, {}}, "conv"},
                        {BatchNormLayer{}, "bn"},
                        {ActivationLayer{Activation::relu}, "relu"},
                        {DropoutLayer{0.3}, "drop"},
                        {FlattenLayer{}, "flat"},
                        {LinearLayer{4, {}}, "fc"}},
                       Loss::softmax_cross_entropy, {});
}

class ScaledSteps : public ::testing::TestWithParam<core::MemorySpace> {
 protected:
  struct Made {
    std::unique_ptr<TrainedModel> model;
    std::shared_ptr<Device> device;
  };
  static Made make(const HostDeviceOptions& options = {}) {
    Made made;
    made.device = std::make_shared<HostDevice>(options);
    nn::CompileOptions compile{.batch = 1, .precision = nn::Precision::fp16};
    if (GetParam() == core::MemorySpace::device) compile.arenas = &made.device->memory();
    made.model = std::make_unique<TrainedModel>(made.device, overflowing_net(), compile);
    auto parameters = made.model->parameters();
    for (float& p : parameters) p *= 8;  // certain of its wrong output
    std::ranges::copy(parameters, made.model->replica->parameters().begin());
    made.model->replica->parameters_written();
    // The label with the smallest output.
    (void)made.model->replica->evaluate(made.model->batch());
    const auto outputs = made.model->replica->outputs();
    made.model->labels[0] = static_cast<std::int32_t>(std::ranges::min_element(outputs) - outputs.begin());
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(Arenas, ScaledSteps, ::testing::Values(core::MemorySpace::host, core::MemorySpace::device),
                         [](const auto& info) {
                           return std::string(info.param == core::MemorySpace::host ? "host" : "device");
                         });

TEST_P(ScaledSteps, StepThatOverflowsIsComputedAgainAsIfItNeverHad) {
  const auto falls = make();
  const auto expected = make();
  const auto parameters = falls.model->parameters();
  const auto first = falls.model->step(3);
  EXPECT_LT(first.loss_scale, 65536) << "nothing overflowed";
  expected.model->replica->set_state_of_steps(state_at(static_cast<unsigned>(std::ilogb(first.loss_scale))));
  const auto second = expected.model->step(3);
  EXPECT_EQ(second.loss_scale, first.loss_scale) << "it began with this one";
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_EQ(falls.model->gradients(), expected.model->gradients());
  EXPECT_EQ(copy_of(falls.model->replica->statistics()), copy_of(expected.model->replica->statistics()));
  EXPECT_EQ(falls.model->parameters(), parameters);
  const auto gradients = falls.model->gradients();
  EXPECT_TRUE(std::ranges::all_of(gradients, [](float g) { return std::isfinite(g); }));
  EXPECT_TRUE(std::ranges::any_of(gradients, [](float g) { return g != 0; }));
}

TEST_P(ScaledSteps, GradientsDoNotContainTheScale) {
  const auto high = make();
  const auto low = make();
  high.model->replica->set_state_of_steps(state_at(12));
  low.model->replica->set_state_of_steps(state_at(9));
  EXPECT_EQ(high.model->step().loss_scale, 4096);
  EXPECT_EQ(low.model->step().loss_scale, 512);
  const auto a = high.model->gradients();
  const auto b = low.model->gradients();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  EXPECT_LT(difference, 1e-6 * norm);  // what is beneath the least number of fp16
}

TEST_P(ScaledSteps, BucketsAreGivenOutOnceAndFinal) {
  const auto whole = make();
  const auto parts = make();
  (void)whole.model->step(1);
  const auto expected = whole.model->gradients();
  std::vector<int> buckets;
  std::vector<float> seen(expected.size());
  const auto result = parts.model->replica->step(parts.model->batch(1), [&](int b) {
    buckets.push_back(b);
    const auto& bucket = parts.model->replica->buckets()[static_cast<std::size_t>(b)];
    std::ranges::copy(parts.model->replica->gradients().subspan(bucket.offset, bucket.count),
                      seen.begin() + static_cast<std::ptrdiff_t>(bucket.offset));
  });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->loss_scale, 65536) << "it was not computed again";
  ASSERT_EQ(buckets.size(), parts.model->replica->buckets().size());
  for (std::size_t b = 0; b < buckets.size(); ++b) EXPECT_EQ(buckets[b], static_cast<int>(b));
  EXPECT_EQ(seen, expected);
}

TEST_P(ScaledSteps, OrderOfTheDeviceChangesNothing) {
  const auto plain = make();
  for (int step = 0; step < 3; ++step) plain.model->momentum_step(static_cast<std::uint64_t>(step));
  if (GetParam() == core::MemorySpace::device) return;  // the host reads device memory without waiting here
  const auto expected = plain.model->parameters();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto late = make({.schedule_seed = seed});
    for (int step = 0; step < 3; ++step) late.model->momentum_step(static_cast<std::uint64_t>(step));
    EXPECT_EQ(late.model->parameters(), expected) << "seed " << seed;
  }
}

TEST_P(ScaledSteps, LossThatIsNotFiniteIsGivenOutAtOnce) {
  const auto made = make();
  const auto before = made.model->replica->state_of_steps();
  std::vector<float> canonical(made.model->replica->layout()->canonical_floats());
  made.model->replica->export_canonical(canonical);
  canonical.back() = std::nanf("");  // a bias of the last layer
  made.model->replica->import_canonical(canonical);
  const auto result = made.model->step();
  EXPECT_FALSE(std::isfinite(result.loss));
  EXPECT_EQ(result.loss_scale, 65536);
  EXPECT_EQ(made.model->replica->state_of_steps(), before);
}

/// Zeros in, so that every output is 0 and the loss ln 10; weights of 6e4 give errors beyond fp16 at any scale: 0.9 · 6e4 · 2.
TEST(ScaledStepsWithoutHelp, GradientsThatOverflowAtScaleOneAreGivenOut) {
  using namespace nn;
  const auto graph =
      *Graph::sequential("huge", {4, 1, 1}, {LinearLayer{3, {}}, LinearLayer{10, {}}}, Loss::softmax_cross_entropy);
  TrainedModel model(std::make_shared<HostDevice>(), graph, {.batch = 1, .precision = Precision::fp16});
  std::vector<float> canonical(model.replica->layout()->canonical_floats(), 0.0F);
  // fc0: 4·3 weights and 3 biases; fc1: weights [10, 3]: the label's row is negative, the others positive.
  model.labels[0] = 0;
  for (std::size_t i = 0; i < 30; ++i) canonical[15 + i] = i < 3 ? -6e4F : 6e4F;
  for (std::size_t i = 0; i < 12; ++i) canonical[i] = 1;
  model.replica->import_canonical(canonical);
  std::ranges::fill(model.images, 0.0F);
  const auto result = model.step();
  EXPECT_NEAR(result.loss, std::log(10.0), 1e-3);
  EXPECT_EQ(result.loss_scale, 1);
  const auto gradients = model.gradients();
  EXPECT_TRUE(std::ranges::any_of(gradients, [](float g) { return !std::isfinite(g); }));
}

}  // namespace
}  // namespace troupe::gpu::testing
