#include "gpu/cuda/plans.hpp"

#include <gtest/gtest.h>

#include "tests/gpu/cuda/described_device.hpp"

namespace troupe::gpu {
namespace {

class CudaPlans : public gpu::testing::DescribedH100 {
 protected:
  core::Result<CudaConvolutionPlan> plan(const Convolution& c) {
    auto graph = CudnnGraph::build(*target_, operation_graph(c));
    if (!graph) return tl::unexpected(graph.error());
    auto shared = std::make_shared<const CudnnGraph>(std::move(*graph));
    auto found = shared->plans(*target_, {std::size_t{1} << 30, true, true}, 1);
    if (!found) return tl::unexpected(found.error());
    return CudaConvolutionPlan(c, shared, std::move(found->at(0)));
  }
};

Convolution weight_gradients(Type type) {
  Convolution c;
  c.direction = Direction::backward_weights;
  c.shape = {{8, 14, 14, 32}, {8, 14, 14, 48}, 3, 1, 1, 1};
  c.type = type;
  return c;
}
constexpr std::size_t kWeightBytes = 48 * 3 * 3 * 32 * 2;  // of 16-bit weights

std::byte* address(std::uintptr_t at) { return reinterpret_cast<std::byte*>(at); }

TEST_F(CudaPlans, SixteenBitGradientsLieBehindTheWorkspaceAndAreCast) {
  const auto made = plan(weight_gradients(Type::bf16));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->engine().ends_with(" + cast"));
  std::byte* workspace = address(1 << 20);
  const Cast cast = made->cast({nullptr, address(1 << 24), nullptr, nullptr, nullptr}, workspace);
  EXPECT_EQ(cast.count, 48 * 3 * 3 * 32);
  EXPECT_EQ(cast.from_type, Type::bf16);
  EXPECT_EQ(cast.to_type, Type::fp32);
  EXPECT_EQ(cast.to, address(1 << 24));
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(cast.from) - workspace);
  EXPECT_EQ(offset % 256, 0U);
  EXPECT_EQ(offset + kWeightBytes, made->workspace());
  const OperationGraph graph = operation_graph(weight_gradients(Type::bf16));
  EXPECT_GE(CudaConvolutionPlan::cast_bytes(graph), kWeightBytes + 255);  // and what aligns it
}

TEST_F(CudaPlans, Float32GradientsAreNotCast) {
  const auto made = plan(weight_gradients(Type::fp32));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->engine().ends_with(" + cast"));
  EXPECT_EQ(made->cast({}, address(1 << 20)).count, 0);
  EXPECT_EQ(CudaConvolutionPlan::cast_bytes(operation_graph(weight_gradients(Type::fp32))), 0U);
}

/// All that precedes the execution works: only the handle, which needs a GPU, is missing.
TEST_F(CudaPlans, ExecutionBindsEveryTensor) {
  Convolution c = weight_gradients(Type::bf16);
  c.direction = Direction::forward;
  c.bias = true;
  c.activation = nn::Activation::relu;
  const auto made = plan(c);
  ASSERT_TRUE(made) << made.error().message;
  const auto ran =
      made->run(nullptr, {address(4096), address(8192), address(16384), address(32768), nullptr}, address(65536));
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("cudnnBackendExecute"), std::string::npos) << ran.error().message;
}

TEST_F(CudaPlans, ExecutionBindsTheSumsOfStatistics) {
  Convolution c = weight_gradients(Type::fp16);
  c.direction = Direction::forward;
  c.shape = {{8, 14, 14, 64}, {8, 14, 14, 64}, 3, 1, 1, 1};
  c.statistics = true;
  const auto made = plan(c);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->engine().ends_with(" + cast"));
  EXPECT_GT(made->workspace(), 0U);
  const auto float_at = [](std::uintptr_t at) { return reinterpret_cast<float*>(at); };
  const auto ran = made->run(
      nullptr, {address(4096), address(8192), address(16384), nullptr, nullptr, float_at(32768), float_at(36864)},
      address(65536));
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("cudnnBackendExecute"), std::string::npos) << ran.error().message;
}

}  // namespace
}  // namespace troupe::gpu
