// A steady step allocates nothing: neither on the device (replica_test.cpp) nor on the heap. The device here does nothing, so that all that is
// counted is the replica's.
#include <atomic>
#include <new>

#include <gtest/gtest.h>

#include "tests/gpu/idle_device.hpp"
#include "tests/gpu/model.hpp"

namespace {
std::atomic<bool> counting_allocations{false};
std::atomic<long> counted_allocations{0};
}  // namespace

// Sanitizers replace the allocator; with them only the steps run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
}
void* operator new(std::size_t bytes) {
  if (counting_allocations.load(std::memory_order_relaxed)) ++counted_allocations;
  if (void* memory = __libc_malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __libc_free(memory); }
#endif

namespace troupe::gpu::testing {
namespace {

class SteadyStepsOnADevice : public ::testing::TestWithParam<bool> {};

TEST_P(SteadyStepsOnADevice, AllocateNothing) {
  auto device = std::make_shared<IdleDevice>();
  for (const nn::Precision precision : {nn::Precision::fp32, nn::Precision::bf16})
    for (const nn::Graph& graph : {lenet(), branching_net()}) {
      nn::CompileOptions options{.batch = 4, .precision = precision};
      if (GetParam()) options.arenas = &device->memory();
      TrainedModel model(device, graph, options);
      const auto batch = model.batch();
      int buckets = 0;
      const std::function<void(int)> on_bucket = [&](int) { ++buckets; };
      const core::OptimizerStep update{
          .kind = core::OptimizerKind::momentum, .lr = 0.01F, .momentum = 0.9F, .clip_norm = 1};
      bool worked = true;
      const auto round = [&] {
        worked = worked && model.replica->step(batch, {}) && model.replica->step(batch, on_bucket);
        model.replica->apply(update, model.velocity.view());
        worked = worked && model.replica->evaluate(batch);
        (void)model.replica->outputs();
      };
      for (int warm_up = 0; warm_up < 3; ++warm_up) round();
      counted_allocations = 0;
      counting_allocations = true;
      for (int i = 0; i < 5; ++i) round();
      counting_allocations = false;
      EXPECT_EQ(counted_allocations, 0);
      EXPECT_TRUE(worked);
      EXPECT_GT(buckets, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Arenas, SteadyStepsOnADevice, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "on_the_device" : "mirrored"; });

}  // namespace
}  // namespace troupe::gpu::testing
