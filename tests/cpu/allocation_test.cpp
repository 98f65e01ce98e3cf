// A steady step allocates nothing in our code. oneDNN allocates only its argument tables, one for every primitive that it
// executes (a few dozen bytes per argument), but no scratchpads and no packing buffers.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <tuple>

#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"
#include "tests/cpu/model.hpp"

namespace {

struct Counters {
  std::atomic<bool> on{false};
  std::atomic<long> ours{0};
  std::atomic<long> library{0};
  std::atomic<std::size_t> largest{0};
};
Counters counters;

/// Whether the code at `address` belongs to oneDNN or the OpenMP runtime.
[[maybe_unused]] bool in_library(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  return std::strstr(info.dli_fname, "libdnnl") != nullptr || std::strstr(info.dli_fname, "libgomp") != nullptr;
}

[[maybe_unused]] void note(std::size_t bytes, const void* caller) {
  if (!counters.on.load(std::memory_order_relaxed)) return;
  counters.on = false;  // dladdr may allocate
  if (in_library(caller)) {
    ++counters.library;
    if (bytes > counters.largest) counters.largest = bytes;
  } else {
    ++counters.ours;
  }
  counters.on = true;
}

}  // namespace

// Sanitizers replace the allocator; with them only the test's arithmetic runs.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
void* malloc(std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return __libc_malloc(bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
}
void* operator new(std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  if (void* memory = __libc_malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __libc_free(memory); }
#endif

namespace troupe::cpu::testing {
namespace {

using namespace nn;

class SteadySteps : public ::testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(SteadySteps, AllocateNothing) {
  const auto graph = [] {
    switch (std::get<0>(GetParam())) {
      case 0: return lenet();
      case 1: return small_net();
      case 2:
        return graph_of({3, 9, 9},
                        {Conv2dLayer{32, 3, 1, 1, {}}, Conv2dLayer{64, 3, 1, 0, {}, 2, false}, BatchNormLayer{},
                         ActivationLayer{Activation::relu}, LrnLayer{}, PoolLayer{PoolKind::max, 2, 2, 0},
                         LinearLayer{20, {}}, BatchNormLayer{}, LinearLayer{10, {}}});
      case 3: {  // branches, sums in place, global pooling
        ModelConfig config;
        config.name = "resnet18";
        return build_model(config, {3, 32, 32}, 10).value();
      }
      default:
        return graph_of({784, 1, 1}, {LinearLayer{100, {}}, ActivationLayer{Activation::sigmoid}, DropoutLayer{},
                                      LinearLayer{10, {}}});
    }
  }();
  const auto precision = std::get<1>(GetParam());
  const auto precisions = backend().capabilities().precisions;
  if (std::ranges::find(precisions, precision) == precisions.end())
    GTEST_SKIP() << "this machine does not compute in bf16";
  Model model(graph, {.batch = 16, .precision = precision, .recompute = precision == Precision::bf16});
  const auto batch = model.batch();
  int buckets = 0;
  const std::function<void(int)> on_bucket = [&](int) { ++buckets; };
  for (int warm_up = 0; warm_up < 3; ++warm_up) model.momentum_step();
  counters.largest = 0;
  ASSERT_TRUE(model.replica->evaluate(batch).has_value());  // as at each round below: working copies are up to date
  long library[2];
  for (long& count : library) {
    counters.ours = counters.library = 0;
    counters.on = true;
    for (int i = 0; i < 5; ++i) {
      const auto stepped = model.replica->step(batch, on_bucket);
      model.replica->apply({core::OptimizerKind::momentum, 0.01f, 0.9f, 0}, model.velocity.view());
      const auto evaluated = model.replica->evaluate(batch);
      if (!stepped || !evaluated) std::abort();
    }
    counters.on = false;
    count = counters.library;
    EXPECT_EQ(counters.ours, 0);
  }
  EXPECT_LT(counters.largest, 4096u);
  EXPECT_EQ(library[0], library[1]);  // the tables are freed, nothing accumulates
  EXPECT_GT(buckets, 0);
}

INSTANTIATE_TEST_SUITE_P(Nets, SteadySteps,
                         ::testing::Combine(::testing::Range(0, 5),
                                            ::testing::Values(Precision::fp32, Precision::bf16)));

}  // namespace
}  // namespace troupe::cpu::testing
