// Runs on a real device. Skipped where there is no CUDA module or no device.
#include <cuda_runtime_api.h>

#include "tests/transport/endpoint_contract.hpp"
#include "transport/common/module.hpp"
#include "transport/device/device_copier.hpp"
#include "transport/inproc/endpoint.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::transport::testing {
namespace {

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_module("cuda")) GTEST_SKIP() << "this build has no module for CUDA";
    auto made = make_device_copier(0);
    if (!made) GTEST_SKIP() << made.error().message;
    copier_ = std::move(*made);
  }

  const core::SteadyClock clock_;
  std::shared_ptr<DeviceCopier> copier_;
};

TEST_F(Cuda, MessagesOfManyLengthsBetweenTwoDeviceMemories) {
  constexpr std::size_t kMost = 3 << 20;
  const EndpointKind kind{"inproc", {}};
  const auto hub = make_inproc_hub("test");
  Party a(kind, {.name = "a", .hub = hub, .device = copier_}, clock_);
  Party b(kind, {.name = "b", .hub = hub, .device = copier_}, clock_);
  const Connection at_a = a->connect(b->address()).value(), at_b = b->connect(a->address()).value();
  void *from = nullptr, *to = nullptr;
  ASSERT_EQ(cudaMalloc(&from, kMost), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&to, kMost), cudaSuccess);
  for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, std::size_t{256} << 10, kMost}) {
    const Bytes sent = pattern(size, 1);
    Bytes received(size);
    ASSERT_EQ(cudaMemcpy(from, sent.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(),
              cudaSuccess);  // from pageable memory the copy may still be under way, and no stream waits for it
    const OperationId receiving =
        b.receive(at_b.peer, tag(1), {static_cast<std::byte*>(to), size, core::MemorySpace::device});
    a.expect_done(a.send(at_a.peer, tag(1), {static_cast<std::byte*>(from), size, core::MemorySpace::device}), size);
    b.expect_done(receiving, size);
    ASSERT_EQ(cudaMemcpy(received.data(), to, size, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(received, sent) << size;
  }
  EXPECT_EQ(cudaFree(from), cudaSuccess);
  EXPECT_EQ(cudaFree(to), cudaSuccess);
}

TEST(CudaModule, ADeviceThatIsNotThereIsAConfigurationError) {
  if (!find_module("cuda")) GTEST_SKIP() << "this build has no module for CUDA";
  const auto copier = make_device_copier(1'000'000);
  ASSERT_FALSE(copier);
  EXPECT_EQ(copier.error().code, core::Errc::config);
  EXPECT_NE(copier.error().message.find("CUDA"), std::string::npos) << copier.error().message;
}

}  // namespace
}  // namespace troupe::transport::testing
