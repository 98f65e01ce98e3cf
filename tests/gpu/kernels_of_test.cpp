// core::Kernels on a device beside core::reference_kernels(): the same bits.
#include "gpu/kernels_of.hpp"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/staging.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::size_t kFloats = 5000;  // more than a chunk of a norm

class KernelsOf : public ::testing::Test {
 protected:
  /// A vector in device memory, which is host memory here, and its copy for the reference.
  struct Pair {
    core::Buffer device;
    std::vector<float> host;
  };
  [[nodiscard]] Pair pair(std::uint64_t index) {
    Pair made{core::Buffer::allocate(device_.memory(), kFloats).value(), random_floats(kFloats, 1.0, index)};
    std::ranges::copy(made.host, made.device.data());
    return made;
  }
  static void expect_equal(const Pair& pair) { EXPECT_TRUE(std::ranges::equal(pair.device.view(), pair.host)); }

  HostDevice device_{HostDeviceOptions{.schedule_seed = 9}};
  ThreadStreams streams_{device_};
  std::unique_ptr<core::Kernels> kernels_ = kernels_of(device_, streams_);
  const core::Kernels& reference_ = core::reference_kernels();
};

TEST_F(KernelsOf, GiveTheBitsOfTheReference) {
  Pair x = pair(1);
  Pair y = pair(2);
  Pair z = pair(3);
  const auto both = [&](const auto& use) {
    use(*kernels_, x.device.view(), y.device.view(), z.device.view());
    use(reference_, core::Span(x.host), core::Span(y.host), core::Span(z.host));
    expect_equal(x);
    expect_equal(y);
    expect_equal(z);
  };
  both([](const auto& k, auto a, auto b, auto) { k.axpy(a, 0.3F, b); });
  both([](const auto& k, auto a, auto b, auto) { k.scale_add(a, 0.7F, 0.2F, b); });
  both([](const auto& k, auto a, auto b, auto c) { k.difference(c, a, b); });
  both([](const auto& k, auto a, auto b, auto) { k.elastic_pair(a, b, 0.1F, 0.2F); });
  both([](const auto& k, auto a, auto b, auto) { k.elastic_delta(a, b, 0.1F, 0.2F); });
  both([](const auto& k, auto a, auto, auto) { k.scale(a, 1.7F); });
  both([](const auto& k, auto a, auto, auto) { k.clamp(a, 0.9F); });
  both([](const auto& k, auto a, auto b, auto c) {
    const std::vector<core::Span> all{a, b, c};
    k.reduce_all(all, 0.25F);
  });
  both([](const auto& k, auto a, auto b, auto) { k.copy(a, b); });
  both([](const auto& k, auto a, auto, auto) { k.fill(a, 3.0F); });
  both([](const auto& k, auto a, auto b, auto c) {
    const std::vector<core::Span> all{a, b, c};
    k.broadcast_all(all, 1);
  });
}

TEST_F(KernelsOf, SumsOfManyVectorsAreThoseOfTheReference) {
  std::vector<Pair> pairs;
  std::vector<core::Span> on_device;
  std::vector<core::Span> on_host;
  for (std::uint64_t i = 0; i < 20; ++i) pairs.push_back(pair(i));
  for (Pair& p : pairs) {
    on_device.push_back(p.device.view());
    on_host.push_back(p.host);
  }
  kernels_->reduce_all(on_device, 0.05F);
  reference_.reduce_all(on_host, 0.05F);
  for (const Pair& p : pairs) expect_equal(p);
}

TEST_F(KernelsOf, OptimizersAreThoseOfTheReference) {
  for (const auto kind : {core::OptimizerKind::sgd, core::OptimizerKind::momentum, core::OptimizerKind::adam})
    for (const bool delta : {false, true}) {
      Pair x = pair(1);
      Pair g = pair(2);
      Pair v = pair(3);
      Pair r = pair(4);
      const core::OptimizerStep step{.kind = kind, .lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .t = 3};
      for (float& value : r.host) value = std::abs(value);  // a mean of squares
      std::ranges::copy(r.host, r.device.data());
      if (delta) {
        kernels_->optimize_delta(x.device.view(), g.device.view(), {v.device.view(), r.device.view()}, step);
        reference_.optimize_delta(x.host, g.host, {v.host, r.host}, step);
      } else {
        kernels_->optimize(x.device.view(), g.device.view(), {v.device.view(), r.device.view()}, step);
        reference_.optimize(x.host, g.host, {v.host, r.host}, step);
      }
      for (const Pair* p : {&x, &g, &v, &r}) expect_equal(*p);
    }
}

TEST_F(KernelsOf, NumbersOfAVectorAreThoseOfTheReference) {
  Pair x = pair(1);
  EXPECT_EQ(kernels_->squared_norm(x.device.view()), reference_.squared_norm(x.host));
  EXPECT_TRUE(kernels_->all_finite(x.device.view()));
  EXPECT_TRUE(kernels_->all_within(x.device.view(), 100));
  EXPECT_FALSE(kernels_->all_within(x.device.view(), 0.5F));
  x.device.view()[4321] = std::nanf("");
  EXPECT_FALSE(kernels_->all_finite(x.device.view()));
}

TEST_F(KernelsOf, HalvesAreThoseOfTheReference) {
  for (const auto kind : {core::HalfKind::fp16, core::HalfKind::bf16}) {
    Pair x = pair(1);
    auto memory = core::Buffer::allocate(device_.memory(), kFloats).value();
    const core::HalfSpan on_device(reinterpret_cast<std::uint16_t*>(memory.data()), kFloats);
    std::vector<std::uint16_t> on_host(kFloats);
    kernels_->narrow(on_device, x.device.view(), kind);
    reference_.narrow(on_host, x.host, kind);
    EXPECT_TRUE(std::ranges::equal(on_device, on_host));
    kernels_->add_wide(x.device.view(), on_device, kind);
    reference_.add_wide(x.host, on_host, kind);
    expect_equal(x);
    kernels_->widen(x.device.view(), on_device, kind);
    reference_.widen(x.host, on_host, kind);
    expect_equal(x);
  }
}

TEST_F(KernelsOf, VectorsOfUnequalLengthAreBugs) {
  Pair x = pair(1);
  Pair y = pair(2);
  EXPECT_THROW(kernels_->axpy(x.device.view(), 1, y.device.view().first(7)), std::invalid_argument);
}

TEST_F(KernelsOf, ADeviceThatFailsThrows) {
  FaultyDevice faulty(device_);
  ThreadStreams streams(faulty);
  const auto kernels = kernels_of(faulty, streams);
  Pair x = pair(1);
  kernels->fill(x.device.view(), 1);
  faulty.set(Fault{.kind = CallKind::launch, .number = 1});
  EXPECT_THROW(kernels->fill(x.device.view(), 2), core::KernelsFailed);
}

// Longer than both pieces of the staging that brings them.
TEST_F(KernelsOf, VectorsGoToTheDeviceAndComeBack) {
  constexpr std::size_t kLong = 3 * Staging::kLargestPiece / sizeof(float) + 48;
  auto device = core::Buffer::allocate(device_.memory(), kLong).value();
  const auto host = random_floats(kLong, 1.0, 4);
  kernels_->upload(device.view(), host);
  kernels_->scale(device.view(), 2);
  std::vector<float> back(kLong - 1);  // from an unaligned place
  kernels_->download(back, device.view().subspan(1));
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], 2 * host[i + 1]) << i;
  kernels_->upload({}, {});
  kernels_->download({}, {});
  EXPECT_THROW(kernels_->upload(device.view(), back), std::invalid_argument);
}

TEST_F(KernelsOf, FinishWaitsForOtherWorkOfTheThread) {
  Pair x = pair(1);
  const auto stream = streams_.mine().value();
  for (int i = 1; i <= 8; ++i)
    ASSERT_TRUE(stream->launch(Fill{x.device.data(), static_cast<float>(i), static_cast<std::int64_t>(kFloats)}));
  kernels_->finish();
  EXPECT_EQ(x.device.view()[kFloats - 1], 8);
}

// A kernel that needs memory of its own would otherwise stop the device at every call.
TEST_F(KernelsOf, CallsReuseTheirScratchMemory) {
  FaultyDevice counted(device_);
  ThreadStreams streams(counted);
  const auto kernels = kernels_of(counted, streams);
  Pair x = pair(1);
  Pair g = pair(2);
  std::vector<float> host(kFloats);
  const auto use = [&] {
    (void)kernels->squared_norm(x.device.view());
    (void)kernels->all_within(x.device.view(), 9);
    kernels->optimize(x.device.view(), g.device.view(), {}, {.lr = 0.1F});
    kernels->download(host, x.device.view());
    kernels->upload(x.device.view(), host);
  };
  use();
  counted.set({});
  use();
  for (const auto kind : {CallKind::allocation, CallKind::pinned_allocation, CallKind::stream, CallKind::event})
    EXPECT_EQ(counted.calls(kind), 0U) << to_string(kind);
}

TEST_F(KernelsOf, EveryCallReportsAFailedDeviceAndMayBeRepeated) {
  FaultyDevice faulty(device_);
  ThreadStreams streams(faulty);
  const auto kernels = kernels_of(faulty, streams);
  Pair x = pair(1);
  std::vector<float> host(kFloats);
  for (const auto kind : {CallKind::copy, CallKind::record, CallKind::synchronize, CallKind::pinned_allocation}) {
    SCOPED_TRACE(to_string(kind));
    faulty.set(Fault{.kind = kind, .number = 1});
    try {
      kernels->download(host, x.device.view());
      EXPECT_FALSE(faulty.struck());
    } catch (const core::KernelsFailed& failed) {
      EXPECT_EQ(failed.error().code, core::Errc::io);
      EXPECT_TRUE(faulty.struck());
    }
    faulty.set({});
    kernels->download(host, x.device.view());
    EXPECT_EQ(host, x.host);
  }
}

TEST_F(KernelsOf, EachThreadHasAStreamOfItsOwn) {
  const auto mine = streams_.mine().value();
  EXPECT_EQ(streams_.mine().value(), mine);
  std::shared_ptr<Stream> other;
  std::jthread([&] { other = streams_.mine().value(); }).join();
  EXPECT_NE(other, mine);
}

}  // namespace
}  // namespace troupe::gpu::testing
