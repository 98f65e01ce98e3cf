// A model whose neurons are spread over ranks computes what the unsplit model computes.
#include "cpu/neurons/replica.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "cpu/compile.hpp"
#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;
using nn::testing::graph_of_nodes;

/// Two orders of the same float32 sums of up to a few hundred terms.
constexpr double kSameSums = 1e-6;

/// The CPU backend, with the neurons of every model spread over its threads.
class NeuronsBackend final : public Backend {
 public:
  explicit NeuronsBackend(bool overlap) : overlap_(overlap) {}
  [[nodiscard]] std::string name() const override { return backend().name(); }
  [[nodiscard]] Capabilities capabilities() const override { return backend().capabilities(); }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return backend().kernels(); }
  [[nodiscard]] core::Result<std::unique_ptr<Replica>> compile(const Graph& graph,
                                                               const CompileOptions& options) override {
    auto split = options;
    split.parallel = Parallel::neurons;
    split.overlap = overlap_;
    return backend().compile(graph, split);
  }

 private:
  bool overlap_;
};
NeuronsBackend overlapping(true);
NeuronsBackend blocking(false);

Graph mlp(std::int64_t inputs, const std::vector<std::int64_t>& widths, Activation activation,
          Loss loss = Loss::softmax_cross_entropy) {
  std::vector<Layer> layers{FlattenLayer{}};
  for (const auto width : widths) {
    layers.emplace_back(LinearLayer{width, {}});
    layers.emplace_back(ActivationLayer{activation});
  }
  if (loss == Loss::softmax_cross_entropy) layers.pop_back();
  return graph_of({1, 1, inputs}, layers, loss);
}

std::vector<double> as_doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

void expect_close(nn::testing::Model& got, nn::testing::Model& want, double tolerance) {
  const auto gradients = got.canonical_gradients();
  const auto expected = as_doubles(want.canonical_gradients());
  std::size_t offset = 0;
  for (const Parameter& parameter : got.graph.parameters()) {
    const auto size = static_cast<std::size_t>(parameter.size());
    EXPECT_LE(relative_error(std::span(gradients).subspan(offset, size),
                             std::span<const double>(expected).subspan(offset, size)),
              tolerance)
        << parameter.name;
    offset += size;
  }
}

TEST(NeuronParallel, StepEqualsTheUnsplitStepForAnyRanksWidthsAndBatch) {
  core::Random random(1, core::Purpose::test, 0);
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
  };
  constexpr Activation kKinds[] = {Activation::relu, Activation::sigmoid, Activation::tanh};
  for (int round = 0; round < 24; ++round) {
    std::vector<std::int64_t> widths;
    for (auto layers = up_to(3); layers > 0; --layers) widths.push_back(up_to(round % 3 == 0 ? 6 : 130));
    widths.back() += 1;  // classes
    const auto loss = round % 4 == 3 ? Loss::squared_error : Loss::softmax_cross_entropy;
    const auto graph = mlp(up_to(round % 2 == 0 ? 20 : 300), widths, kKinds[round % 3], loss);
    const std::int64_t batch = round % 5 == 0 ? 1 : up_to(67);
    const double smoothing = round % 6 == 4 ? 0.1 : 0;
    Model want(graph, {.batch = batch, .label_smoothing = smoothing});
    const auto expected = want.step();
    for (const int ranks : {1, 2, 3, 5}) {
      SCOPED_TRACE(::testing::Message() << "round " << round << ", " << ranks << " ranks, batch " << batch
                                        << ", widths " << ::testing::PrintToString(widths));
      const CompileOptions options{.batch = batch, .threads = ranks, .label_smoothing = smoothing};
      nn::testing::Model got(overlapping, graph, options);
      const auto result = got.step();
      EXPECT_NEAR(result.loss, expected.loss, kSameSums * expected.loss);
      EXPECT_EQ(result.top1, expected.top1);
      EXPECT_EQ(result.top5, expected.top5);
      EXPECT_EQ(result.samples, batch);
      EXPECT_LE(relative_error(got.replica->outputs(), as_doubles(want.replica->outputs())), kSameSums);
      expect_close(got, want, kSameSums);

      nn::testing::Model other(blocking, graph, options);
      EXPECT_EQ(other.step().loss, result.loss);
      EXPECT_EQ(other.canonical_gradients(), got.canonical_gradients());  // bit for bit
    }
  }
}

TEST(NeuronParallel, EqualsTheDoublePrecisionReference) {
  for (const int ranks : {1, 2, 3}) {
    nn::testing::expect_like_reference(overlapping, mlp(30, {17, 9, 4}, Activation::tanh), 7, nullptr, ranks);
    nn::testing::expect_like_reference(blocking, mlp(12, {5, 6}, Activation::sigmoid, Loss::squared_error), 1, nullptr,
                                       ranks);
  }
}

TEST(NeuronParallel, ShortTrainingHasTheLossesOfTheUnsplitModel) {
  const auto graph = mlp(64, {50, 40, 10}, Activation::sigmoid);
  Model want(graph, {.batch = 33});
  nn::testing::Model got(overlapping, graph, {.batch = 33, .threads = 3});
  for (int step = 0; step < 50; ++step) {
    EXPECT_NEAR(got.step().loss, want.step().loss, 1e-5) << step;
    got.momentum_step();
    want.momentum_step();
  }
}

TEST(NeuronParallel, LayoutIsThatOfTheUnsplitModel) {
  const auto graph = mlp(33, {50, 41, 10}, Activation::relu);
  Model want(graph, {.batch = 4});
  nn::testing::Model got(overlapping, graph, {.batch = 4, .threads = 3});
  EXPECT_EQ(got.replica->layout_fingerprint(), want.replica->layout_fingerprint());
  EXPECT_EQ(got.canonical_parameters(), want.canonical_parameters());
}

TEST(NeuronParallel, UpdateOfALargeArenaIsSharedAndHasTheBitsOfOneThread) {
  const auto graph = mlp(300, {500, 10}, Activation::relu);
  nn::testing::Model one(overlapping, graph, {.batch = 2, .threads = 1});
  nn::testing::Model three(overlapping, graph, {.batch = 2, .threads = 3});
  (void)one.step();
  (void)three.step();
  std::ranges::copy(one.replica->gradients(), three.replica->gradients().begin());
  const core::OptimizerStep rule{
      .kind = core::OptimizerKind::momentum, .lr = 0.1f, .momentum = 0.9f, .clip_norm = 0.5f};
  for (auto* model : {&one, &three}) model->replica->apply(rule, model->velocity.view());
  EXPECT_EQ(three.canonical_parameters(), one.canonical_parameters());
  EXPECT_THROW(three.replica->apply(rule, core::Span()), std::invalid_argument);
}

TEST(NeuronParallel, EvaluationIgnoresPaddingAndNeedsNoGradients) {
  const auto graph = mlp(20, {9, 7}, Activation::relu);
  Model want(graph, {.batch = 6, .training = false});
  nn::testing::Model got(overlapping, graph, {.batch = 6, .threads = 2, .training = false});
  EXPECT_TRUE(got.replica->gradients().empty());
  auto batch = got.batch();
  batch.count = 4;
  const auto expected = want.replica->evaluate(batch).value();
  const auto result = got.replica->evaluate(batch).value();
  EXPECT_NEAR(result.loss, expected.loss, kSameSums);
  EXPECT_EQ(result.samples, 4);
  EXPECT_EQ(result.top1, expected.top1);
  EXPECT_THROW((void)got.step(), std::logic_error);
}

TEST(NeuronParallel, BucketsAreReportedOnceInOrderOnTheCallersThread) {
  const auto graph = mlp(64, {300, 400, 300, 10}, Activation::relu);
  for (auto* const used : {&overlapping, &blocking}) {
    nn::testing::Model model(*used, graph, {.batch = 2, .threads = 3});
    ASSERT_EQ(model.replica->buckets().size(), 3u);
    const auto caller = std::this_thread::get_id();
    for (int step = 0; step < 20; ++step) {
      std::vector<int> reported;
      std::vector<std::vector<float>> seen;
      const auto batch = model.batch();
      ASSERT_TRUE(model.replica
                      ->step(batch,
                             [&](int bucket) {
                               EXPECT_EQ(std::this_thread::get_id(), caller);
                               reported.push_back(bucket);
                               const auto& b = model.replica->buckets()[static_cast<std::size_t>(bucket)];
                               const auto part = model.replica->gradients().subspan(b.offset, b.count);
                               seen.emplace_back(part.begin(), part.end());
                             })
                      .has_value());
      EXPECT_EQ(reported, (std::vector<int>{0, 1, 2}));
      for (std::size_t b = 0; b < seen.size(); ++b) {  // final when they were reported
        const auto& bucket = model.replica->buckets()[b];
        const auto part = model.replica->gradients().subspan(bucket.offset, bucket.count);
        EXPECT_TRUE(std::ranges::equal(part, seen[b]));
      }
    }
  }
}

TEST(NeuronParallel, LabelOutsideTheClassesIsAnErrorAndTheNextStepWorks) {
  const auto graph = mlp(20, {9, 7}, Activation::relu);
  nn::testing::Model model(overlapping, graph, {.batch = 6, .threads = 3});
  const auto right = model.labels[4];
  model.labels[4] = 7;
  const auto batch = model.batch();
  const auto refused = model.replica->step(batch, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, core::Errc::data);
  model.labels[4] = right;
  EXPECT_TRUE(std::isfinite(model.step().loss));
}

TEST(NeuronParallel, PlanPinsTheProducts) {
  const auto graph = mlp(20, {9, 7}, Activation::relu);
  nn::testing::Model first(overlapping, graph, {.batch = 6, .threads = 2});
  const auto plan = first.replica->plan();
  EXPECT_NE(plan.json.find("fc1.forward.5"), std::string::npos);  // 9 neurons: 5 and 4
  EXPECT_NE(plan.json.find("fc1.forward.4"), std::string::npos);
  nn::testing::Model second(overlapping, graph, {.batch = 6, .threads = 2, .plan = &plan});
  EXPECT_EQ(second.replica->plan().json, plan.json);
  EXPECT_EQ(second.step().loss, first.step().loss);
  EXPECT_EQ(second.canonical_gradients(), first.canonical_gradients());
}

std::string refusal(const Graph& graph, CompileOptions options) {
  core::HostAllocator allocator;
  options.arenas = &allocator;
  const auto compiled = overlapping.compile(graph, options);
  if (compiled) return "";
  EXPECT_EQ(compiled.error().code, core::Errc::config);
  return compiled.error().message;
}

TEST(NeuronParallel, RefusesOtherModelsByTheirLayer) {
  const std::string needs =
      "model.parallel = \"neurons\" needs a chain of linear layers, each with one activation or none: layer ";
  EXPECT_EQ(refusal(lenet(), {}), needs + "conv1 of test is of type conv2d");
  EXPECT_EQ(refusal(graph_of({8, 1, 1}, {LinearLayer{9, {}}, DropoutLayer{}, LinearLayer{4, {}}}), {}),
            needs + "dropout1 of test is of type dropout");
  EXPECT_EQ(refusal(graph_of({8, 1, 1}, {ActivationLayer{}, LinearLayer{4, {}}}), {}),
            needs + "relu1 of test is an activation in front of the first linear layer");
  EXPECT_EQ(refusal(graph_of({8, 1, 1}, {LinearLayer{4, {}}, ActivationLayer{}, ActivationLayer{}}), {}),
            needs + "relu2 of test is a second activation in a row");
  EXPECT_EQ(refusal(graph_of_nodes({8, 1, 1}, {{.layer = LinearLayer{4, {}}, .name = "a"},
                                               {.layer = LinearLayer{4, {}}, .name = "b", .inputs = {"input"}},
                                               {.layer = AddLayer{}, .name = "sum", .inputs = {"a", "b"}}}),
                    {}),
            needs + "b of test does not follow the layer before it");
  EXPECT_EQ(
      refusal(graph_of_nodes({8, 1, 1},
                             {{.layer = LinearLayer{4, {}}, .name = "a"}, {.layer = LinearLayer{4, {}}, .name = "b"}},
                             {{.node = "a"}}),
              {}),
      needs + "a of test has an auxiliary loss");
}

TEST(NeuronParallel, RefusesWhatItDoesNotSupport) {
  const auto graph = mlp(20, {9, 7}, Activation::relu);
  if (computes_bf16()) {
    EXPECT_EQ(refusal(graph, {.precision = Precision::bf16}),
              "model test: model.parallel = \"neurons\" computes in float32 only: set cluster.precision = \"fp32\"");
  }
  EXPECT_EQ(refusal(graph, {.recompute = true}),
            "model test: model.parallel = \"neurons\" cannot compute activations again: set train.recompute = false");
  EXPECT_NE(refusal(graph, {.threads = 0}), "");
}

}  // namespace
}  // namespace troupe::cpu::testing
