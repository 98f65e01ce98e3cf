// What HostDevice knows of a kernel's memory, against sizes that are written out here.
#include "gpu/kernels/kernel_ranges.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "gpu/device/host_device.hpp"

namespace troupe::gpu {
namespace {

struct Sized {
  std::string name;
  std::size_t bytes;
};

/// Operands, each with memory of its own, and the call on them.
struct KernelCase {
  std::vector<Sized> operands;
  std::function<Kernel(const std::vector<void*>&)> make;
};

template <class T>
T* at(void* memory) {
  return static_cast<T*>(memory);
}

std::vector<KernelCase> kernel_cases() {
  return {
      {{{"y", 20}, {"x", 20}},
       [](const auto& m) {
         return Axpy{at<float>(m[0]), at<float>(m[1]), 2, 5};
       }},
      // 3 pixels; channels 1 and 2 of 4 become the only two: the last element read is number 2 · 4 + 2
      {{{"from", 22}, {"to", 12}},
       [](const auto& m) {
         return CopyChannels{.from = m[0],
                             .to = m[1],
                             .from_channels = 4,
                             .from_first = 1,
                             .to_channels = 2,
                             .channels = 2,
                             .pixels = 3,
                             .type = Type::bf16};
       }},
      // from sums: no scratch
      {{{"x", 1800}, {"mean", 12}, {"inverse_deviation", 12}, {"sum", 12}, {"squares", 12}},
       [](const auto& m) {
         return BatchStatistics{.x = m[0],
                                .mean = at<float>(m[1]),
                                .inverse_deviation = at<float>(m[2]),
                                .pixels = 300,
                                .channels = 3,
                                .type = Type::bf16,
                                .sum = at<float>(m[3]),
                                .squares = at<float>(m[4])};
       }},
      // 300 rows are two chunks of 150: two values of 3 channels each
      {{{"x", 3600}, {"mean", 12}, {"inverse_deviation", 12}, {"scratch", 48}},
       [](const auto& m) {
         return BatchStatistics{.x = m[0],
                                .mean = at<float>(m[1]),
                                .inverse_deviation = at<float>(m[2]),
                                .scratch = at<float>(m[3]),
                                .pixels = 300,
                                .channels = 3};
       }},
      {{{"z", 24}, {"labels", 8}, {"samples", 8}, {"gradient", 12}, {"sums", 32}, {"row_sums", 64}},
       [](const auto& m) {
         return LossKernel{.z = at<float>(m[0]),
                           .labels = at<std::int32_t>(m[1]),
                           .samples = at<std::int64_t>(m[2]),
                           .gradient = m[3],
                           .sums = at<LossSums>(m[4]),
                           .row_sums = at<LossSums>(m[5]),
                           .rows = 2,
                           .classes = 3,
                           .gradient_type = Type::fp16};
       }},
      {{{"x", 64}, {"y", 16}, {"winners", 32}},
       [](const auto& m) {
         return PoolBackward{{.x = m[0],
                              .y = m[1],
                              .winners = at<std::int32_t>(m[2]),
                              .input = {1, 4, 4, 2},
                              .output = {1, 2, 2, 2},
                              .type = Type::bf16}};
       }},
      {{{"x", 24}, {"g", 24}, {"first", 24}, {"second", 24}},
       [](const auto& m) {
         return Optimize{.kind = core::OptimizerKind::adam,
                         .x = at<float>(m[0]),
                         .g = at<float>(m[1]),
                         .first = at<float>(m[2]),
                         .second = at<float>(m[3]),
                         .count = 6};
       }},
      // 5000 floats are two chunks of 4096
      {{{"x", 20000}, {"chunks", 16}, {"result", 8}},
       [](const auto& m) {
         return SquaredNorm{at<float>(m[0]), at<double>(m[1]), at<double>(m[2]), 5000};
       }},
  };
}

/// The launch of a case on a device, with one operand shorter by a byte (-1: none).
core::Result<void> launched(const KernelCase& kernel, int shorter) {
  HostDevice device;
  std::vector<void*> memory;
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    bytes.push_back(kernel.operands[i].bytes - (static_cast<int>(i) == shorter ? 1 : 0));
    memory.push_back(*device.memory().allocate(bytes.back()));
  }
  auto stream = *device.make_stream();
  auto ran = stream->launch(kernel.make(memory));
  for (std::size_t i = 0; i < memory.size(); ++i) device.memory().deallocate(memory[i], bytes[i]);
  return ran;
}

TEST(KernelRanges, AreAllThatAKernelNeedsAndAByteLessIsRefusedByName) {
  for (const KernelCase& kernel : kernel_cases()) {
    const auto whole = launched(kernel, -1);
    EXPECT_TRUE(whole) << whole.error().message;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      const auto refused = launched(kernel, static_cast<int>(i));
      ASSERT_FALSE(refused) << kernel.operands[i].name;
      EXPECT_NE(refused.error().message.find(" of " + kernel.operands[i].name + " at"), std::string::npos)
          << refused.error().message;
    }
  }
}

TEST(KernelRanges, LeaveOutWhatACallMayLeaveOut) {
  float memory[8] = {};
  const auto ranges = ranges_of(BatchNormForward{.x = memory,
                                                 .y = memory,
                                                 .weight = memory,
                                                 .bias = memory,
                                                 .mean = memory,
                                                 .inverse_deviation = memory,
                                                 .pixels = 4,
                                                 .channels = 2});
  EXPECT_EQ(ranges.size(), 6U);  // no addend
  EXPECT_TRUE(ranges_of(Fill{memory, 1, 0}).empty());
}

}  // namespace
}  // namespace troupe::gpu
