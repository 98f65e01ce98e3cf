// Convolutions by Winograd's algorithm and directly: the same numbers, and the plan says which.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/program/trials.hpp"
#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

constexpr const char* kWinograd = "jit_wino_4x3:avx512_core";

/// 3x3 convolutions: with bias and relu, without bias, without padding, and one whose image does not end with a tile.
Graph blocked_net() {
  return graph_of(
      {16, 15, 15},
      {Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}}, ActivationLayer{},
       Conv2dLayer{.outputs = 16, .kernel = 3, .padding = 1, .weight = {}, .bias = false}, BatchNormLayer{},
       ActivationLayer{}, Conv2dLayer{.outputs = 32, .kernel = 3, .weight = {}}, FlattenLayer{}, LinearLayer{10, {}}});
}

Plan winograd_everywhere() {
  std::string implementations;
  for (const char* layer : {"conv1", "conv2", "conv3"})
    for (const char* direction : {"forward", "backward_weights", "backward_data"})
      if (std::string(layer) != "conv1" || std::string(direction) != "backward_data")
        implementations += (implementations.empty() ? "\"" : ",\"") + std::string(layer) + "." + direction + "\":\"" +
                           kWinograd + "\"";
  return {R"({"backend":"cpu","version":1,"activations":"blocked","implementations":{)" + implementations + "}}"};
}

TEST(ConvolutionMethod, WinogradComputesWhatTheReferenceDoes) {
  const Plan plan = winograd_everywhere();
  core::HostAllocator allocator;
  const auto compiled = backend().compile(blocked_net(), {.batch = 5, .arenas = &allocator, .plan = &plan});
  if (!compiled) GTEST_SKIP() << "not on this machine: " << compiled.error().message;
  EXPECT_NE((*compiled)->plan().json.find(kWinograd), std::string::npos);
  nn::testing::expect_like_reference(backend(), blocked_net(), 5, &plan, 1, 1e-4);
  nn::testing::expect_like_reference(backend(), blocked_net(), 5, &plan, 2, 1e-4);
}

TEST(ConvolutionMethod, MeasuredChoicesComputeWhatTheReferenceDoesAndThePlanRepeatsThem) {
  Model measured(blocked_net(), {.batch = 5});
  const Plan plan = measured.replica->plan();
  nn::testing::expect_like_reference(backend(), blocked_net(), 5, &plan, 1, 1e-4);
  Model again(blocked_net(), {.batch = 5, .plan = &plan});
  EXPECT_EQ(again.replica->plan().json, plan.json);
  EXPECT_EQ(again.step().loss, measured.step().loss);
  EXPECT_EQ(again.canonical_gradients(), measured.canonical_gradients());
}

TEST(ConvolutionMethod, TheFixedRuleIsTheSameEachTime) {
  Model first(blocked_net(), {.batch = 5, .measure = false});
  Model second(blocked_net(), {.batch = 5, .measure = false});
  EXPECT_EQ(first.replica->plan().json, second.replica->plan().json);
}

TEST(ConvolutionMethod, APlanForAnotherPrecisionIsRefused) {
  Model full(blocked_net(), {.batch = 5});
  const Plan plan = full.replica->plan();
  core::HostAllocator allocator;
  const auto refused =
      backend().compile(blocked_net(), {.batch = 5, .precision = Precision::bf16, .arenas = &allocator, .plan = &plan});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_EQ(refused.error().message.find(nn::kPlanRefused), 0u) << refused.error().message;
}

/// oneDNN's Winograd kernels take no tanh behind them.
TEST(ConvolutionMethod, APlanForWinogradWhereThereIsNoneIsRefusedAsAPlan) {
  const Graph graph = graph_of({16, 8, 8}, {Conv2dLayer{.outputs = 16, .kernel = 3, .padding = 1, .weight = {}},
                                            ActivationLayer{Activation::tanh}, FlattenLayer{}, LinearLayer{4, {}}});
  const Plan plan{fmt::format(
      R"({{"backend":"cpu","version":1,"activations":"blocked","implementations":{{"conv1.forward":"{}"}}}})",
      kWinograd)};
  core::HostAllocator allocator;
  const auto refused = backend().compile(graph, {.batch = 2, .arenas = &allocator, .plan = &plan});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_TRUE(refused.error().message.starts_with(nn::kPlanRefused)) << refused.error().message;
  EXPECT_NE(refused.error().message.find("conv1"), std::string::npos) << refused.error().message;
}

dnnl::memory::desc vector_of(std::int64_t floats) {
  return {{floats}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
}

Candidate activation_over(const dnnl::engine& engine, std::int64_t floats) {
  const dnnl::eltwise_forward::primitive_desc desc(
      {dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu, vector_of(floats), 0.0F, 0.0F}, engine);
  return {dnnl::eltwise_forward(desc), {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_DST, desc.dst_desc()}}, {}};
}

TEST(Trials, AThousandfoldWorkDoesNotPayAndAnAnswerIsKept) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  Trials trials(engine);
  const auto small = activation_over(engine, 4'000);
  const auto large = activation_over(engine, 4'000'000);
  EXPECT_TRUE(trials.pays("smaller", large, small));
  EXPECT_FALSE(trials.pays("larger", small, large));
  EXPECT_TRUE(trials.pays("smaller", small, large)) << "the key was measured before";
}

TEST(Trials, ReordersCount) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  Trials trials(engine);
  const auto usual = activation_over(engine, 400'000);
  auto other = activation_over(engine, 4'000);
  other.reorders.emplace_back(engine, vector_of(4'000'000), engine, vector_of(4'000'000));
  EXPECT_FALSE(trials.pays("with a copy of ten times the size", usual, other));
}

}  // namespace
}  // namespace troupe::cpu::testing
