#include "core/buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

TEST(SliceOf, CutsMatchValuesByHand) {
  // 100 floats are 7 units of 16, the last one partial: 3 + 2 + 2 units.
  EXPECT_EQ(slice_of(100, 0, 3), (Slice{0, 48}));
  EXPECT_EQ(slice_of(100, 1, 3), (Slice{48, 32}));
  EXPECT_EQ(slice_of(100, 2, 3), (Slice{80, 20}));
  // 17 floats are 2 units for 4 ranks.
  EXPECT_EQ(slice_of(17, 0, 4), (Slice{0, 16}));
  EXPECT_EQ(slice_of(17, 1, 4), (Slice{16, 1}));
  EXPECT_EQ(slice_of(17, 2, 4), (Slice{17, 0}));
  EXPECT_EQ(slice_of(17, 3, 4), (Slice{17, 0}));
  EXPECT_EQ(slice_of(0, 0, 1), (Slice{0, 0}));
}

TEST(SliceOf, RankMustBeOneOfTheRanks) {
  EXPECT_THROW((void)slice_of(10, 2, 2), std::invalid_argument);
  EXPECT_THROW((void)slice_of(10, 0, 0), std::invalid_argument);
}

RC_GTEST_PROP(SliceOf, PartsAreAlignedBalancedAndCoverTheVector, ()) {
  const auto floats = *rc::gen::inRange<std::size_t>(0, 100'000);
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 100);
  const std::size_t units = align_floats(floats) / kAlignmentFloats;
  std::size_t next = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Slice slice = slice_of(floats, r, ranks);
    RC_ASSERT(slice.offset == next);
    RC_ASSERT(slice.offset % kAlignmentFloats == 0 || slice.count == 0);
    const std::size_t mine = align_floats(slice.count) / kAlignmentFloats;
    RC_ASSERT(mine == units / ranks || mine == units / ranks + 1);
    next += slice.count;
  }
  RC_ASSERT(next == floats);
}

}  // namespace
}  // namespace troupe::core
