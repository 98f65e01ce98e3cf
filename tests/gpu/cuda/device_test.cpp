// The real device: memory, streams, events, captures and the kernels over vectors, beside core::reference_kernels(). Skipped where this build
// or this machine has no NVIDIA GPU. What a step computes there is checked by tests/nn/backend_contract.
#include <array>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "gpu/device/host_launch.hpp"
#include "gpu/device/load.hpp"
#include "gpu/kernels_of.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = load_device(0);
    if (!device) GTEST_SKIP() << device.error().message;
    device_ = std::move(*device);
    streams_.emplace(*device_);
    kernels_ = kernels_of(*device_, *streams_);
    stream_ = device_->make_stream().value();
  }

  [[nodiscard]] core::Buffer on_device(const std::vector<float>& values) {
    auto memory = core::Buffer::allocate(device_->memory(), values.size()).value();
    auto pinned = core::Buffer::allocate(device_->pinned(), values.size()).value();
    std::ranges::copy(values, pinned.data());
    EXPECT_TRUE(stream_->copy_to_device(memory.data(), pinned.data(), values.size() * sizeof(float)));
    EXPECT_TRUE(stream_->synchronize());
    return memory;
  }
  [[nodiscard]] std::vector<float> on_host(core::ConstSpan device) {
    auto pinned = core::Buffer::allocate(device_->pinned(), device.size()).value();
    EXPECT_TRUE(stream_->copy_to_host(pinned.data(), device.data(), device.size_bytes()));
    EXPECT_TRUE(stream_->synchronize());
    return {pinned.data(), pinned.data() + device.size()};
  }

  /// Vectors with the same values on the device and on the host.
  struct Both {
    std::vector<core::Buffer> device;
    std::vector<std::vector<float>> host;
  };
  [[nodiscard]] Both vectors(std::size_t count, std::size_t floats) {
    Both both;
    for (std::size_t i = 0; i < count; ++i) {
      both.host.push_back(random_floats(floats, 1.0, i));
      both.device.push_back(on_device(both.host.back()));
    }
    return both;
  }
  void expect_equal(const Both& both, const char* what) {
    for (std::size_t i = 0; i < both.host.size(); ++i)
      EXPECT_EQ(on_host(both.device[i].view()), both.host[i]) << what << ", vector " << i;
  }

  std::shared_ptr<Device> device_;
  std::optional<ThreadStreams> streams_;
  std::unique_ptr<core::Kernels> kernels_;
  std::unique_ptr<Stream> stream_;
  const core::Kernels& reference_ = core::reference_kernels();
};

// Less than a warp, a part of a block, more than the blocks that run at one time; none a multiple of a vector's width but one.
constexpr std::size_t kLengths[] = {1, 31, 1000, 4096, 3'000'001};

TEST_F(CudaDeviceTest, MemoryIsZeroAndAligned) {
  auto memory = core::Buffer::allocate(device_->memory(), 100'003).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0U);
  EXPECT_EQ(on_host(memory.view()), std::vector<float>(100'003, 0.0F));
}

TEST_F(CudaDeviceTest, VectorKernelsGiveTheBitsOfTheReference) {
  for (const std::size_t length : kLengths) {
    SCOPED_TRACE(length);
    Both v = vectors(4, length);
    const auto both = [&](const char* what, const auto& use) {
      std::vector<core::Span> device;
      std::vector<core::Span> host;
      for (std::size_t i = 0; i < v.host.size(); ++i) {
        device.push_back(v.device[i].view());
        host.emplace_back(v.host[i]);
      }
      use(*kernels_, device);
      use(reference_, host);
      expect_equal(v, what);
    };
    both("axpy", [](const auto& k, const auto& a) { k.axpy(a[0], 0.3F, a[1]); });
    both("scale_add", [](const auto& k, const auto& a) { k.scale_add(a[0], 0.7F, 0.2F, a[1]); });
    both("difference", [](const auto& k, const auto& a) { k.difference(a[2], a[0], a[1]); });
    both("elastic_pair", [](const auto& k, const auto& a) { k.elastic_pair(a[0], a[1], 0.1F, 0.2F); });
    both("elastic_delta", [](const auto& k, const auto& a) { k.elastic_delta(a[0], a[1], 0.1F, 0.2F); });
    both("scale", [](const auto& k, const auto& a) { k.scale(a[3], 1.7F); });
    both("clamp", [](const auto& k, const auto& a) { k.clamp(a[3], 0.9F); });
    both("reduce_all", [](const auto& k, const auto& a) { k.reduce_all(a, 0.25F); });
    both("fill", [](const auto& k, const auto& a) { k.fill(a[0], 3.0F); });
    both("broadcast_all", [](const auto& k, const auto& a) { k.broadcast_all(a, 1); });
    EXPECT_EQ(kernels_->squared_norm(v.device[1].view()), reference_.squared_norm(v.host[1]));
    EXPECT_TRUE(kernels_->all_finite(v.device[1].view()));
    EXPECT_EQ(kernels_->all_within(v.device[1].view(), 0.1F), reference_.all_within(v.host[1], 0.1F));
  }
}

TEST_F(CudaDeviceTest, OptimizersGiveTheBitsOfTheReference) {
  using core::OptimizerKind;
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov, OptimizerKind::rmsprop,
                          OptimizerKind::adagrad, OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::adadelta})
    for (const bool delta : {false, true}) {
      SCOPED_TRACE(static_cast<int>(kind));
      Both v = vectors(4, 100'003);
      for (const std::size_t i : {2, 3}) {  // means of squares
        for (float& x : v.host[i]) x = std::abs(x);
        v.device[i] = on_device(v.host[i]);
      }
      const core::OptimizerStep step{.kind = kind, .lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .t = 3};
      const core::OptimizerState state(v.device[2].view(), v.device[3].view());
      const core::OptimizerState expected(v.host[2], v.host[3]);
      if (delta) {
        kernels_->optimize_delta(v.device[0].view(), v.device[1].view(), state, step);
        reference_.optimize_delta(v.host[0], v.host[1], expected, step);
      } else {
        kernels_->optimize(v.device[0].view(), v.device[1].view(), state, step);
        reference_.optimize(v.host[0], v.host[1], expected, step);
      }
      expect_equal(v, delta ? "optimize_delta" : "optimize");
    }
}

TEST_F(CudaDeviceTest, HalvesAreThoseOfTheReference) {
  for (const auto kind : {core::HalfKind::fp16, core::HalfKind::bf16}) {
    constexpr std::size_t kFloats = 100'003;
    Both v = vectors(1, kFloats);
    auto memory = core::Buffer::allocate(device_->memory(), kFloats).value();
    const core::HalfSpan halves(reinterpret_cast<std::uint16_t*>(memory.data()), kFloats);
    std::vector<std::uint16_t> expected(kFloats);
    kernels_->narrow(halves, v.device[0].view(), kind);
    reference_.narrow(expected, v.host[0], kind);
    kernels_->add_wide(v.device[0].view(), halves, kind);
    reference_.add_wide(v.host[0], expected, kind);
    expect_equal(v, "add_wide");
    kernels_->widen(v.device[0].view(), halves, kind);
    reference_.widen(v.host[0], expected, kind);
    expect_equal(v, "widen");
  }
}

TEST_F(CudaDeviceTest, CapturedStepsAreExecutedAtEachLaunchOnly) {
  Both v = vectors(2, 5000);
  const Axpy axpy{v.device[0].data(), v.device[1].data(), 0.5F, 5000};
  const auto run = [&] {
    ASSERT_TRUE(stream_->launch(axpy));
    reference_.axpy(v.host[0], 0.5F, v.host[1]);
  };
  run();  // loads the code
  ASSERT_TRUE(stream_->begin_capture());
  ASSERT_TRUE(stream_->launch(axpy));
  auto graph = stream_->end_capture();
  ASSERT_TRUE(graph) << graph.error().message;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream_->launch(**graph));
    reference_.axpy(v.host[0], 0.5F, v.host[1]);
  }
  expect_equal(v, "launched three times");
}

/// Columns about 0, and every fourth about 1000, which the kernel reads again.
TEST_F(CudaDeviceTest, StatisticsOfSumsHaveTheBitsOfTheHost) {
  constexpr std::size_t kRows = 5003, kColumns = 67;
  std::vector<float> x = random_floats(kRows * kColumns, 1.0, 1), sum(kColumns), squares(kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % kColumns % 4 == 0) x[i] += 1000;
    sum[i % kColumns] += x[i];
    squares[i % kColumns] += x[i] * x[i];
  }
  Both v{{}, {x, sum, squares, sum, sum, sum}};
  for (const auto& vector : v.host) v.device.push_back(on_device(vector));
  const auto call = [&](const std::array<float*, 6>& at) {
    return BatchStatistics{.x = at[0],
                           .mean = at[3],
                           .inverse_deviation = at[4],
                           .pixels = kRows,
                           .channels = kColumns,
                           .variance = at[5],
                           .sum = at[1],
                           .squares = at[2]};
  };
  std::array<float*, 6> there{}, here{};
  for (std::size_t i = 0; i < here.size(); ++i) {
    there[i] = v.device[i].data();
    here[i] = v.host[i].data();
  }
  ASSERT_TRUE(stream_->launch(call(there)));
  host::execute(call(here));
  expect_equal(v, "statistics of sums");
  EXPECT_NEAR(v.host[5][0], 1, 0.1) << "of values about 1000";
}

/// Sums of the launch before must not be added to.
TEST_F(CudaDeviceTest, AConvolutionOverwritesItsStatisticsAtEachLaunchOfACapturedStep) {
  const Convolution description{.shape = {{8, 14, 14, 64}, {8, 14, 14, 64}, 3, 1, 1, 1},
                                .type = Type::fp16,
                                .deterministic = true,
                                .statistics = true};
  const auto plans = device_->plans(description, std::size_t{64} << 20);
  if (!plans) GTEST_SKIP() << plans.error().message;
  const float small = std::bit_cast<float>(0x24002400U);  // two numbers of fp16: 2⁻⁶
  const auto halves = static_cast<std::size_t>(description.shape.input.size());
  auto x = on_device(std::vector<float>(halves / 2, small));
  auto w = on_device(std::vector<float>(64 * 9 * 64 / 2, small));
  auto y = on_device(std::vector<float>(halves / 2));
  for (const auto& plan : *plans) {
    auto sum = on_device(std::vector<float>(64, std::nanf(""))), squares = on_device(std::vector<float>(64, 1e9F));
    auto workspace = core::Buffer::allocate(device_->memory(), plan->workspace() / sizeof(float) + 1).value();
    const ConvolutionOperands operands{x.data(), w.data(), y.data(), nullptr, nullptr, sum.data(), squares.data()};
    ASSERT_TRUE(stream_->run(*plan, operands, workspace.data()));
    const auto first = std::pair(on_host(sum.view()), on_host(squares.view()));
    // Inside, y = 2⁻¹² · 64 · 9; one row of taps less at each border of an image of 14 · 14.
    EXPECT_NEAR(first.first[0], 8 * 0x1p-12 * 64 * (3 * 14 - 2) * (3 * 14 - 2), 0.01);
    ASSERT_TRUE(stream_->begin_capture());
    ASSERT_TRUE(stream_->run(*plan, operands, workspace.data()));
    const auto graph = stream_->end_capture();
    ASSERT_TRUE(graph) << plan->engine() << ": " << graph.error().message;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(stream_->launch(**graph));
      EXPECT_EQ(std::pair(on_host(sum.view()), on_host(squares.view())), first) << plan->engine();
    }
  }
}

TEST_F(CudaDeviceTest, AStreamWaitsForAnEventOfAnother) {
  const auto other = device_->make_stream().value();
  const auto before = device_->make_event().value();
  const auto done = device_->make_event().value();
  Both v = vectors(2, 3'000'001);
  ASSERT_TRUE(other->record(*before));
  for (int i = 0; i < 50; ++i) {  // long enough that the other stream would overtake
    ASSERT_TRUE(other->launch(Axpy{v.device[0].data(), v.device[1].data(), 0.01F, 3'000'001}));
    reference_.axpy(v.host[0], 0.01F, v.host[1]);
  }
  ASSERT_TRUE(other->record(*done));
  ASSERT_TRUE(stream_->wait(*done));
  ASSERT_TRUE(stream_->launch(Scale{v.device[0].data(), 2.0F, 3'000'001}));
  reference_.scale(v.host[0], 2.0F);
  expect_equal(v, "after the other stream's work");
  const auto seconds = device_->seconds_between(*before, *done);
  ASSERT_TRUE(seconds) << seconds.error().message;
  EXPECT_GT(*seconds, 0);
}

}  // namespace
}  // namespace troupe::gpu::testing
