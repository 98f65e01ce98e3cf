// What exchanges ask of real devices: copies by other threads, and the memory of another device. Skipped where this machine has no NVIDIA GPU,
// or not two that reach each other.
#include <future>

#include <gtest/gtest.h>

#include "gpu/device/load.hpp"
#include "gpu/kernels_of.hpp"
#include "gpu/stream_copier.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::size_t kFloats = 1'000'003;

std::byte* bytes_in(core::Buffer& buffer) { return reinterpret_cast<std::byte*>(buffer.data()); }

// What a kernel wrote on one thread's stream, a copier's thread reads after the kernel's call has returned.
TEST(CudaExchange, CopiersSeeWhatKernelsWrote) {
  const auto device = load_device(0);
  if (!device) GTEST_SKIP() << device.error().message;
  ThreadStreams streams(**device);
  const auto kernels = kernels_of(**device, streams);
  StreamCopier copier(*device);
  auto there = core::Buffer::allocate((*device)->memory(), kFloats).value();
  auto here = core::Buffer::allocate(copier.pinned(), kFloats).value();
  for (int round = 1; round <= 20; ++round) {
    kernels->fill(there.view(), static_cast<float>(round));
    std::promise<core::Result<void>> done;
    auto copied = done.get_future();
    copier.to_host(bytes_in(here), bytes_in(there), kFloats * sizeof(float),
                   [&done](core::Result<void> result) { done.set_value(std::move(result)); });
    ASSERT_TRUE(copied.get());
    ASSERT_TRUE(std::ranges::all_of(here.view(), [round](float x) { return x == static_cast<float>(round); })) << round;
  }
}

TEST(CudaExchange, KernelsOfOneDeviceUseTheMemoryOfAnother) {
  const auto first = load_device(0);
  const auto second = load_device(1);
  if (!first) GTEST_SKIP() << first.error().message;
  if (!second) GTEST_SKIP() << second.error().message;
  const auto there = (*first)->reach(**second);
  const auto back = (*second)->reach(**first);
  ASSERT_TRUE(there && back);
  if (!*there || !*back) GTEST_SKIP() << "the first two devices do not reach each other's memory";
  ThreadStreams streams_of_first(**first);
  ThreadStreams streams_of_second(**second);
  const auto kernels_of_first = kernels_of(**first, streams_of_first);
  const auto kernels_of_second = kernels_of(**second, streams_of_second);
  auto x = core::Buffer::allocate((*first)->memory(), kFloats).value();
  auto center = core::Buffer::allocate((*second)->memory(), kFloats).value();
  auto host_x = random_floats(kFloats, 1.0, 1);
  auto host_center = random_floats(kFloats, 1.0, 2);
  kernels_of_first->upload(x.view(), host_x);
  kernels_of_second->upload(center.view(), host_center);
  const core::Kernels& reference = core::reference_kernels();
  for (int round = 0; round < 20; ++round) {
    const auto& kernels = round % 2 == 0 ? kernels_of_first : kernels_of_second;
    kernels->elastic_pair(x.view(), center.view(), 0.25F, 0.125F);
    reference.elastic_pair(host_x, host_center, 0.25F, 0.125F);
  }
  kernels_of_first->copy(x.view(), center.view());
  std::vector<float> found(kFloats);
  kernels_of_second->download(found, x.view());
  EXPECT_EQ(found, host_center);
}

}  // namespace
}  // namespace troupe::gpu::testing
