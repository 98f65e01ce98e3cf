// Our own gradients of convolutions followed by max pooling: against the reference and oneDNN's, for any number of threads.
#include "cpu/kernels/pooled_gradient.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

constexpr ActivationLayer kRelu{Activation::relu};
constexpr PoolLayer kHalve{PoolKind::max, 2, 2, 0};

struct Case {
  std::int64_t images, first, second;  // channels
  std::int64_t kernel;
};

Graph net(const Case& c, bool relu, bool bias, Shape size) {
  std::vector<Layer> layers;
  for (const std::int64_t outputs : {c.first, c.second}) {
    layers.emplace_back(Conv2dLayer{outputs, c.kernel, 1, 0, {}, 1, bias});
    if (relu) layers.emplace_back(kRelu);
    layers.emplace_back(kHalve);
  }
  layers.emplace_back(LinearLayer{7, {}});
  return graph_of({c.images, size.height, size.width}, layers);
}

/// The number of places where the plan uses our kernels.
int used(const Plan& plan) {
  int count = 0;
  const auto json = nlohmann::json::parse(plan.json);
  for (const auto& name : json.at("implementations")) count += name == kPooledGradient ? 1 : 0;
  return count;
}

class PooledGradient : public ::testing::TestWithParam<Case> {
  void SetUp() override {
    if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this CPU has no AVX-512";
  }
};

// 19x18: with 5x5, 15x14 pooled to 7x7 (one row is left out), then 3x3 to 1x1.
TEST_P(PooledGradient, MatchesReference) {
  for (const std::int64_t batch : {1, 3, 9})
    for (const bool relu : {true, false})
      for (const bool bias : {true, false}) {
        SCOPED_TRACE(::testing::Message() << "batch " << batch << " relu " << relu << " bias " << bias);
        const Graph graph = net(GetParam(), relu, bias, {1, 19, 18});
        expect_like_reference(graph, batch);
        expect_like_reference(graph, batch, nullptr, 2);
      }
  Model model(net(GetParam(), true, true, {1, 19, 18}), {.batch = 3});
  EXPECT_EQ(used(model.replica->plan()), 2);
}

TEST_P(PooledGradient, HasTheSameBitsForAnyThreads) {
  const Graph graph = net(GetParam(), true, true, {1, 22, 21});
  std::vector<std::vector<float>> gradients;
  for (const int threads : {1, 2, 3}) {
    Model model(graph, {.batch = 7, .threads = threads, .measure = false});
    (void)model.step();
    gradients.push_back(model.canonical_gradients());
    (void)model.step();
    EXPECT_EQ(model.canonical_gradients(), gradients.back());
  }
  const auto convolutions = static_cast<std::ptrdiff_t>(graph.parameters()[0].size() + graph.parameters()[1].size() +
                                                        graph.parameters()[2].size());
  for (const auto& other : gradients)
    EXPECT_TRUE(std::equal(other.begin(), other.begin() + convolutions, gradients[0].begin()));
}

TEST_P(PooledGradient, AgreesWithOneDnns) {
  const Graph graph = net(GetParam(), true, true, {1, 19, 18});
  Model own(graph, {.batch = 5});
  auto json = nlohmann::json::parse(own.replica->plan().json);
  for (const char* use : {"conv1.backward_weights", "conv2.backward_weights"})
    json["implementations"][use] = "jit:avx512_core";
  const Plan plan{json.dump()};
  Model theirs(graph, {.batch = 5, .plan = &plan});
  EXPECT_EQ(used(theirs.replica->plan()), 0);
  (void)own.step();
  (void)theirs.step();
  const auto want = theirs.canonical_gradients();
  EXPECT_LT(relative_error(own.canonical_gradients(), std::vector<double>(want.begin(), want.end())), 1e-5);
}

/// 15x14 pooled to 8x7: the last row of windows has one row of pixels. Then, with 3x3, 6x5 pooled to 3x3.
TEST_P(PooledGradient, WindowsThatHangOverTheEndAreOneDnns) {
  const Case& c = GetParam();
  const PoolLayer halve{PoolKind::max, 2, 2, 0, true};
  const Graph graph = graph_of({c.images, 19, 18}, {Conv2dLayer{c.first, 5, 1, 0, {}}, kRelu, halve,
                                                    Conv2dLayer{c.second, 3, 1, 0, {}}, halve, LinearLayer{7, {}}});
  expect_like_reference(graph, 3);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PooledGradient,
                         ::testing::Values(Case{3, 16, 16, 5}, Case{1, 32, 48, 3}, Case{3, 64, 16, 3},
                                           Case{2, 16, 32, 5}, Case{16, 16, 16, 3}));

TEST(PooledGradients, AreForWholeBlocksAndPlainWindowsOnly) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this CPU has no AVX-512";
  const ConvolutionShape shape{.batch = 2,
                               .channels = 32,
                               .height = 9,
                               .width = 9,
                               .outputs = 16,
                               .out_height = 5,
                               .out_width = 5,
                               .kernel = 5,
                               .stride = 1,
                               .padding = 0};
  EXPECT_TRUE(pooled_gradient_fits(shape, kHalve, false));
  EXPECT_FALSE(pooled_gradient_fits(shape, {PoolKind::average, 2, 2, 0}, false));
  EXPECT_FALSE(pooled_gradient_fits(shape, {PoolKind::max, 3, 2, 0}, false));
  EXPECT_FALSE(pooled_gradient_fits(shape, {PoolKind::max, 2, 2, 1}, false));
  EXPECT_FALSE(
      pooled_gradient_fits(shape, {PoolKind::max, 2, 2, 0, true}, false));  // 5 rows: a window hangs over the end
  const auto with = [&](auto change) {
    ConvolutionShape other = shape;
    change(other);
    return pooled_gradient_fits(other, kHalve, true);
  };
  ConvolutionShape even = shape;
  even.height = even.width = 10;
  even.out_height = even.out_width = 6;
  EXPECT_TRUE(pooled_gradient_fits(even, {PoolKind::max, 2, 2, 0, true}, false));
  EXPECT_TRUE(with([](auto& s) { s.channels = 3; }));
  EXPECT_FALSE(with([](auto& s) { s.channels = 4; }));  // a row of 20 floats
  EXPECT_FALSE(with([](auto& s) { s.outputs = 20; }));
  EXPECT_FALSE(with([](auto& s) { s.stride = 2; }));
  EXPECT_FALSE(with([](auto& s) { s.padding = 1; }));
  EXPECT_FALSE(with([](auto& s) { s.kernel = 7; }));
}

}  // namespace
}  // namespace troupe::cpu::testing
