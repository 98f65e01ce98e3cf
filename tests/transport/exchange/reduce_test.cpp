#include "transport/exchange/reduce.hpp"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "core/random.hpp"

namespace troupe::exchange {
namespace {

constexpr std::size_t kLengths[] = {0, 1, 15, 16, 17, 31, 32, 48, 100, 112, 127, 128, 129, 1000, 1024, 4099};

struct ReduceArenas {
  core::HostAllocator allocator;
  std::vector<core::Buffer> buffers;
  std::vector<core::Span> spans;

  ReduceArenas(std::size_t ranks, std::size_t floats, std::uint64_t seed) {
    for (std::size_t r = 0; r < ranks; ++r) {
      buffers.push_back(core::Buffer::allocate(allocator, floats + 1).value());  // never empty
      spans.push_back(buffers.back().view().first(floats));
      core::Random random(seed, core::Purpose::test, r);
      for (float& x : spans.back()) x = static_cast<float>(random.uniform(-1, 1));
    }
  }
};

// The definition: add in rank order in float32, then scale.
std::vector<float> serial_sum(const std::vector<core::Span>& arenas, float scale) {
  std::vector<float> sum(arenas[0].begin(), arenas[0].end());
  for (std::size_t r = 1; r < arenas.size(); ++r)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += arenas[r][i];
  for (float& x : sum) x *= scale;
  return sum;
}

// The ranks run one after the other. The result equals one serial sum bit for bit.
TEST(ReduceSlice, EqualsTheSerialSumInRankOrder) {
  for (const core::Kernels* kernels : {&core::reference_kernels(), &core::host_kernels()})
    for (std::size_t ranks = 1; ranks <= 8; ++ranks)
      for (const std::size_t floats : kLengths) {
        ReduceArenas arenas(ranks, floats, ranks * 10'000 + floats);
        const float scale = 1.0f / static_cast<float>(ranks);
        const std::vector<float> expected = serial_sum(arenas.spans, scale);
        for (std::size_t r = 0; r < ranks; ++r) reduce_slice(*kernels, arenas.spans, r, scale);
        for (std::size_t r = 0; r < ranks; ++r)
          ASSERT_EQ(std::vector<float>(arenas.spans[r].begin(), arenas.spans[r].end()), expected)
              << ranks << " ranks, " << floats << " floats";
      }
}

TEST(ReduceSlice, TouchesItsSliceOnly) {
  ReduceArenas arenas(3, 100, 1);
  const ReduceArenas before(3, 100, 1);
  reduce_slice(core::reference_kernels(), arenas.spans, 1, 1.0f);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t i = 0; i < 100; ++i) {
      const bool mine = i >= 48 && i < 80;
      const float sum = (before.spans[0][i] + before.spans[1][i]) + before.spans[2][i];
      EXPECT_EQ(arenas.spans[r][i], mine ? sum : before.spans[r][i]) << r << ", " << i;
    }
}

TEST(BroadcastSlice, GivesEveryRankTheRootsSlice) {
  for (std::size_t ranks = 1; ranks <= 8; ++ranks)
    for (const std::size_t floats : kLengths) {
      const std::size_t root = floats % ranks;
      ReduceArenas arenas(ranks, floats, floats);
      const std::vector<float> expected(arenas.spans[root].begin(), arenas.spans[root].end());
      for (std::size_t r = 0; r < ranks; ++r) broadcast_slice(core::host_kernels(), arenas.spans, r, root);
      for (std::size_t r = 0; r < ranks; ++r)
        ASSERT_EQ(std::vector<float>(arenas.spans[r].begin(), arenas.spans[r].end()), expected)
            << ranks << " ranks, " << floats << " floats";
    }
}

TEST(ReduceSlice, BrokenPreconditionsThrow) {
  const core::Kernels& kernels = core::reference_kernels();
  ReduceArenas arenas(2, 100, 1);
  EXPECT_THROW(reduce_slice(kernels, {}, 0, 1.0f), std::invalid_argument);
  EXPECT_THROW(reduce_slice(kernels, arenas.spans, 2, 1.0f), std::invalid_argument);
  EXPECT_THROW(broadcast_slice(kernels, arenas.spans, 0, 2), std::invalid_argument);
  arenas.spans[1] = arenas.spans[1].first(99);
  EXPECT_THROW(reduce_slice(kernels, arenas.spans, 0, 1.0f), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::exchange
