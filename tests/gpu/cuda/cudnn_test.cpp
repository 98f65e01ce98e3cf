// The graphs of the zoo against cuDNN itself: its heuristics and plans work for a device that is only described, on machines without a GPU.
// Skipped where cuDNN is not installed.
#include <gtest/gtest.h>

#include "tests/gpu/cuda/described_device.hpp"
#include "tests/gpu/plans/recorded.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kCudnnWorkspace = std::size_t{1} << 30;

class CudnnForH100 : public gpu::testing::DescribedH100 {
 protected:
  core::Result<std::vector<CudnnPlan>> plans(const Convolution& c, CudnnFilter filter, std::size_t most = 16) {
    graphs_.push_back(CudnnGraph::build(*target_, operation_graph(c)));
    if (!graphs_.back()) return tl::unexpected(graphs_.back().error());
    return graphs_.back()->plans(*target_, filter, most);
  }
  std::vector<core::Result<CudnnGraph>> graphs_;
};

CudnnFilter filter_for(const Convolution& c) {
  return {kCudnnWorkspace, c.deterministic, c.type != Type::fp32 || c.math == Math::tf32};
}

Convolution some_convolution(Type type) {
  Convolution c;
  c.shape = {{64, 56, 56, 64}, {64, 56, 56, 64}, 3, 1, 1, 1};
  c.type = type;
  return c;
}

class CudnnForZoo : public CudnnForH100, public ::testing::WithParamInterface<std::string> {};

TEST_P(CudnnForZoo, HasAnEngineForEveryConvolutionAndFindsItAgainByName) {
  for (const auto precision : {nn::Precision::fp32, nn::Precision::tf32, nn::Precision::bf16}) {
    for (const Convolution& c : gpu::testing::record_descriptions(GetParam(), precision, 64).convolutions) {
      if (c.statistics) continue;  // it may have none
      graphs_.clear();
      const auto found = plans(c, filter_for(c), 2);
      ASSERT_TRUE(found) << to_string(c) << ": " << found.error().message;
      ASSERT_FALSE(found->empty()) << to_string(c);
      const auto parsed = parse_cudnn_engine(to_string(found->front().engine));
      ASSERT_TRUE(parsed);
      const auto again = graphs_.back()->plan(*target_, filter_for(c), *parsed);
      ASSERT_TRUE(again) << to_string(c) << ": " << again.error().message;
      EXPECT_EQ(to_string(again->engine), to_string(found->front().engine));
      EXPECT_EQ(again->workspace, found->front().workspace);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudnnForZoo, ::testing::ValuesIn(gpu::testing::all_models()),
                         [](const auto& info) { return info.param; });

TEST_F(CudnnForH100, FusesABiasAndReluInEveryType) {
  for (const Type type : {Type::fp32, Type::bf16, Type::fp16})
    for (const bool relu : {false, true}) {
      Convolution c = some_convolution(type);
      c.bias = true;
      c.math = Math::tf32;
      if (relu) c.activation = nn::Activation::relu;
      const auto found = plans(c, filter_for(c));
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_GE(found->size(), 8U) << to_string(c);
    }
}

/// Without a driver cuDNN compiles no fusion, and its compiled engines sum up statistics in fp16 alone, of no convolution of 8 channels: what
/// is refused must be refused as no engine, so that a step goes on without it.
TEST_F(CudnnForH100, SumsUpStatisticsInFp16AndRefusesOtherwiseWithoutHarm) {
  for (const Convolution& c :
       gpu::testing::record_descriptions("resnet50", nn::Precision::fp16, 64, false).convolutions) {
    if (!c.statistics) continue;
    graphs_.clear();
    CudnnFilter filter = filter_for(c);
    const auto found = plans(c, filter);
    ASSERT_TRUE(found) << to_string(c) << ": " << found.error().message;
    EXPECT_EQ(found->empty(), c.shape.input.channels == 8) << to_string(c);
    if (found->empty()) continue;
    const auto again = graphs_.back()->plan(*target_, filter, found->front().engine);
    ASSERT_TRUE(again) << to_string(c) << ": " << again.error().message;
    EXPECT_EQ(again->engine, found->front().engine);
    filter.workspace = 0;
    const auto none = graphs_.back()->plans(*target_, filter, 16);
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty()) << "its parts of the sums lie in the workspace";
  }
  for (const bool bias : {false, true}) {
    Convolution c = some_convolution(Type::bf16);
    c.bias = bias;
    c.statistics = true;
    EXPECT_TRUE(plans(c, filter_for(c)));
  }
}

TEST_F(CudnnForH100, NamesEachEngineOnce) {
  const Convolution c = some_convolution(Type::bf16);
  const auto found = plans(c, filter_for(c), 100);
  ASSERT_TRUE(found);
  for (std::size_t i = 0; i < found->size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(to_string((*found)[i].engine), to_string((*found)[j].engine));
}

TEST_F(CudnnForH100, DeterministicAndExactEnginesAreAPartOfAllEngines) {
  for (const Direction direction : {Direction::backward_data, Direction::backward_weights}) {
    Convolution c = some_convolution(Type::fp32);
    c.direction = direction;
    const auto all = plans(c, {kCudnnWorkspace, false, true}, 100);
    const auto deterministic = plans(c, {kCudnnWorkspace, true, true}, 100);
    const auto exact = plans(c, {kCudnnWorkspace, true, false}, 100);
    ASSERT_TRUE(all && deterministic && exact);
    EXPECT_LT(deterministic->size(), all->size());
    EXPECT_LT(exact->size(), deterministic->size());
    EXPECT_FALSE(exact->empty());
    const auto refused = graphs_.front()->plan(*target_, {kCudnnWorkspace, true, false}, all->front().engine);
    const bool is_exact = to_string(all->front().engine) == to_string(exact->front().engine);
    EXPECT_EQ(refused.has_value(), is_exact);
  }
}

TEST_F(CudnnForH100, WorkspaceIsALimit) {
  Convolution c = some_convolution(Type::bf16);
  c.direction = Direction::backward_weights;
  const auto all = plans(c, {kCudnnWorkspace, false, true}, 100);
  const auto none = plans(c, {0, false, true}, 100);
  ASSERT_TRUE(all && none);
  EXPECT_LT(none->size(), all->size());
  for (const CudnnPlan& plan : *none) EXPECT_EQ(plan.workspace, 0U);
}

TEST_F(CudnnForH100, RefusesAnUnknownEngineWithoutHarm) {
  const Convolution c = some_convolution(Type::bf16);
  ASSERT_TRUE(plans(c, filter_for(c), 1));
  for (const char* name : {"cudnn 99999", "cudnn 0 2=77", "cudnn -1"}) {
    const auto plan = graphs_.back()->plan(*target_, filter_for(c), *parse_cudnn_engine(name));
    ASSERT_FALSE(plan) << name;
    EXPECT_EQ(plan.error().code, core::Errc::config) << plan.error().message;
  }
}

TEST(CudnnEngine, TextIsReadBackAndOtherTextIsNot) {
  const CudnnEngine engine{41, {{2, 7}, {13, 1}}};
  EXPECT_EQ(to_string(engine), "cudnn 41 2=7 13=1");
  EXPECT_EQ(parse_cudnn_engine("cudnn 41 2=7 13=1"), engine);
  EXPECT_EQ(parse_cudnn_engine("cudnn 0"), (CudnnEngine{0, {}}));
  for (const char* text :
       {"", "cudnn", "cudnn ", "cudnn x", "cudnn 1 ", "cudnn 1 2", "cudnn 1 2=", "cudnn 1 2=3x", "host direct"})
    EXPECT_FALSE(parse_cudnn_engine(text)) << text;
}

}  // namespace
}  // namespace troupe::gpu
