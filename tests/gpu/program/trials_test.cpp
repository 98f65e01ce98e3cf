// Engines that do not compute as exactly as asked are found by what they compute; single elements of convolutions beside whole ones.
#include "gpu/program/trials.hpp"

#include <gtest/gtest.h>

#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/program/sampled_convolution.hpp"
#include "gpu/program/scratch.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::size_t kWorkspace = 1 << 20;

/// Strides, groups, padding, an image that is narrower than the kernel.
std::vector<Convolution> some_convolutions(Type type, Math math) {
  std::vector<Convolution> all;
  for (const auto direction : {Direction::forward, Direction::backward_data, Direction::backward_weights})
    for (const ConvolutionShape& shape : {ConvolutionShape{{2, 6, 6, 4}, {2, 6, 6, 8}, 3, 1, 1, 1},
                                          ConvolutionShape{{3, 9, 7, 8}, {3, 5, 4, 6}, 1, 2, 0, 2},
                                          ConvolutionShape{{2, 11, 8, 3}, {2, 5, 4, 5}, 3, 2, 1, 1},
                                          ConvolutionShape{{1, 2, 2, 3}, {1, 2, 2, 5}, 5, 1, 2, 1}})
      all.push_back({.direction = direction, .shape = shape, .type = type, .math = math});
  return all;
}

TEST(SampledConvolution, HasEveryElementOfTheWhole) {
  for (const Convolution& c : some_convolutions(Type::fp32, Math::fp32)) {
    SCOPED_TRACE(to_string(c));
    HostDevice device;
    const auto stream = device.make_stream().value();
    const auto plans = device.plans(c, kWorkspace).value();
    const ConvolutionScratch scratch(device, c, plans);
    const auto numbers = random_floats(1000, 1.0, 1);
    const auto fill = [&](const Scratch& memory, std::int64_t elements) {
      for (std::int64_t i = 0; i < elements; ++i)
        memory.floats()[i] = numbers[static_cast<std::size_t>(i) % numbers.size()];
    };
    fill(scratch.x, c.shape.input.size());
    fill(scratch.y, c.shape.output.size());
    fill(scratch.w, c.shape.weights());
    ASSERT_TRUE(stream->run(*plans.front(), scratch.operands(), scratch.workspace.get()));
    ASSERT_TRUE(stream->synchronize());
    const Scratch& result = c.direction == Direction::forward         ? scratch.y
                            : c.direction == Direction::backward_data ? scratch.x
                                                                      : scratch.w;
    const ElementOf element = [&](std::int64_t i) -> double { return numbers[static_cast<std::size_t>(i) % 1000]; };
    for (std::int64_t i = 0; i < elements_of_the_result(c); ++i)
      ASSERT_NEAR(result.floats()[i], element_of_the_result(c, i, element, element), 1e-4) << i;
  }
}

TEST(TrialOfExactness, KeepsFloat32AndRemovesTf32) {
  for (const bool fused : {false, true})
    for (Convolution exact : some_convolutions(Type::fp32, Math::fp32)) {
      if (fused && exact.direction != Direction::forward) continue;
      exact.bias = fused;
      if (fused) exact.activation = nn::Activation::relu;
      Convolution rounding = exact;
      rounding.math = Math::tf32;
      SCOPED_TRACE(to_string(exact));
      HostDevice device;
      const auto stream = device.make_stream().value();
      auto plans = device.plans(exact, kWorkspace).value();
      const std::size_t offered = plans.size();
      ASSERT_TRUE(remove_inexact(device, *stream, exact, plans));
      EXPECT_EQ(plans.size(), offered);
      // Engines that round, under the description that allows no rounding.
      auto rounded = device.plans(rounding, kWorkspace).value();
      ASSERT_TRUE(remove_inexact(device, *stream, exact, rounded));
      EXPECT_TRUE(rounded.empty());
      auto allowed = device.plans(rounding, kWorkspace).value();
      ASSERT_TRUE(remove_inexact(device, *stream, rounding, allowed));
      EXPECT_EQ(allowed.size(), offered);
      EXPECT_FALSE(plans.empty());
    }
}

/// Or plain convolutions would have no engine for good, and those by rule another one each time.
TEST(TrialOfExactness, AnEngineThatFindsNoMemoryIsAnErrorAndOneThatFailsIsRemoved) {
  for (const auto code : {core::Errc::out_of_memory, core::Errc::io}) {
    HostDevice host;
    FaultyDevice device(host);
    const auto stream = device.make_stream().value();
    const Convolution description = some_convolutions(Type::fp32, Math::fp32).front();
    auto plans = device.plans(description, kWorkspace).value();
    const std::size_t offered = plans.size();
    device.set(Fault{.kind = CallKind::run, .number = 1, .code = code});
    const auto tried = remove_inexact(device, *stream, description, plans);
    EXPECT_TRUE(device.struck());
    if (code == core::Errc::out_of_memory) {
      ASSERT_FALSE(tried);
      EXPECT_EQ(tried.error().code, code);
    } else {
      ASSERT_TRUE(tried);
      EXPECT_EQ(plans.size(), offered - 1);
    }
    plans.clear();
    EXPECT_EQ(host.live_bytes(), 0U);
  }
}

TEST(TrialOfExactness, WithoutMemoryIsAnErrorThatSaysSo) {
  HostDevice scarce(HostDeviceOptions{.memory = 1000, .is_measurable = true});
  const auto stream = scarce.make_stream().value();
  const Convolution description = some_convolutions(Type::fp32, Math::fp32).front();
  auto plans = scarce.plans(description, kWorkspace).value();
  const auto tried = remove_inexact(scarce, *stream, description, plans);
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().code, core::Errc::out_of_memory);
}

}  // namespace
}  // namespace troupe::gpu::testing
