#include "core/buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

/// Counts the bytes in use, and fails on request.
class CountingAllocator final : public Allocator {
 public:
  [[nodiscard]] MemorySpace space() const noexcept override { return MemorySpace::host; }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    if (refuse) return fail(Errc::out_of_memory, "refused");
    out += bytes;
    return host_.allocate(bytes);
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override {
    out -= bytes;
    host_.deallocate(memory, bytes);
  }
  std::size_t out = 0;  // bytes
  bool refuse = false;

 private:
  HostAllocator host_;
};

TEST(AlignFloats, RoundsUpToWholeLines) {
  EXPECT_EQ(align_floats(0), 0u);
  EXPECT_EQ(align_floats(1), 16u);
  EXPECT_EQ(align_floats(16), 16u);
  EXPECT_EQ(align_floats(17), 32u);
  EXPECT_EQ(align_floats(431'080), 431'088u);
}

TEST(HostAllocator, GivesZeroedAlignedMemoryOfEverySize) {
  HostAllocator allocator;
  // Below and above the size from which huge pages are requested, and not multiples of the alignment.
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{65}, std::size_t{4096},
                                  std::size_t{4'194'303}, std::size_t{4'194'305}}) {
    for (int round = 0; round < 2; ++round) {  // the second allocation may get the dirty memory of the first one
      auto memory = allocator.allocate(bytes);
      ASSERT_TRUE(memory) << bytes;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % kAlignment, 0u) << bytes;
      const auto* begin = static_cast<const unsigned char*>(*memory);
      EXPECT_TRUE(std::all_of(begin, begin + bytes, [](unsigned char c) { return c == 0; })) << bytes;
      std::memset(*memory, 0xAB, bytes);
      allocator.deallocate(*memory, bytes);
    }
  }
}

TEST(HostAllocator, RefusesMoreThanAnyMachineHas) {
  HostAllocator allocator;
  const auto memory = allocator.allocate(std::numeric_limits<std::size_t>::max() - 7);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Errc::out_of_memory);
  EXPECT_EQ(
      memory.error().message,
      "cannot allocate 18446744073709551608 bytes of memory: use a smaller model, a smaller batch or fewer workers");
}

TEST(Buffer, OfNothingAsksForNothing) {
  CountingAllocator allocator;
  allocator.refuse = true;
  const auto buffer = Buffer::allocate(allocator, 0);
  ASSERT_TRUE(buffer);
  EXPECT_TRUE(buffer->empty());
  EXPECT_TRUE(buffer->view().empty());
}

TEST(Buffer, PassesTheAllocatorsErrorOn) {
  CountingAllocator allocator;
  allocator.refuse = true;
  const auto buffer = Buffer::allocate(allocator, 1);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().message, "refused");
}

TEST(Buffer, OutOfMemoryNamesThePurpose) {
  CountingAllocator allocator;
  allocator.refuse = true;
  EXPECT_EQ(Buffer::allocate(allocator, 1, "the gradients of lenet").error().message,
            "the gradients of lenet: refused");
  HostAllocator host;
  const auto floats = std::numeric_limits<std::size_t>::max() / 8;
  EXPECT_EQ(
      Buffer::allocate(host, floats, "the parameters of lenet").error().message,
      "the parameters of lenet: cannot allocate 9223372036854775804 bytes of memory: use a smaller model, a smaller "
      "batch or fewer workers");
}

TEST(Buffer, RefusesACountWhoseBytesOverflow) {
  CountingAllocator allocator;
  const auto buffer =
      Buffer::allocate(allocator, std::numeric_limits<std::size_t>::max() / 4 + 2);  // 4 bytes after an overflow
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, Errc::out_of_memory);
  EXPECT_EQ(allocator.out, 0u);
}

TEST(Buffer, ReturnsItsMemoryOnce) {
  CountingAllocator allocator;
  {
    auto first = Buffer::allocate(allocator, 10).value();
    auto second = Buffer::allocate(allocator, 6).value();
    EXPECT_EQ(allocator.out, 64u);
    second = std::move(first);  // frees 6 floats
    EXPECT_EQ(allocator.out, 40u);
    EXPECT_EQ(second.size(), 10u);
    EXPECT_TRUE(first.empty());        // NOLINT(bugprone-use-after-move): documented to be empty
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(clang-analyzer-cplusplus.Move)
    const Buffer third(std::move(second));
    EXPECT_EQ(allocator.out, 40u);
    EXPECT_EQ(third.view().size(), 10u);
  }
  EXPECT_EQ(allocator.out, 0u);
}

TEST(Buffer, SurvivesAssignmentToItself) {
  CountingAllocator allocator;
  auto buffer = Buffer::allocate(allocator, 4).value();
  buffer.data()[3] = 5;
  Buffer& same = buffer;
  buffer = std::move(same);
  ASSERT_EQ(buffer.size(), 4u);
  EXPECT_EQ(buffer.data()[3], 5);
  EXPECT_EQ(allocator.out, 16u);
}

}  // namespace
}  // namespace troupe::core
