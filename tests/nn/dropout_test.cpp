#include "nn/dropout.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace troupe::nn {
namespace {

std::vector<float> mask(std::uint64_t seed, std::uint64_t lease, int node, double rate, std::size_t units) {
  std::vector<float> out(units, -1);
  dropout_mask(seed, lease, node, rate, out);
  return out;
}

TEST(Dropout, FollowsTheStreamWordByWord) {
  constexpr std::uint64_t kSeed = 0x123456789abcdef0u;
  constexpr std::uint64_t kLease = (std::uint64_t{1} << 40) + 5;
  for (const std::size_t units : {1u, 3u, 4u, 1001u}) {
    core::Random random(kSeed, core::Purpose::dropout, kLease << 16 | 7);
    const auto got = mask(kSeed, kLease, 7, 0.3, units);
    for (std::size_t i = 0; i < units; ++i) {
      const bool kept = static_cast<double>(random.bits()) >= 0.3 * 4294967296.0;
      EXPECT_EQ(got[i], kept ? static_cast<float>(1 / 0.7) : 0.0f) << i << " of " << units;
    }
  }
}

// A micro-batch drops what the whole batch would drop there, also where it begins inside a block of the stream.
TEST(Dropout, PartsOfABatchEqualTheWhole) {
  const auto whole = mask(1, 2, 3, 0.5, 1001);
  for (const std::size_t part : {7U, 8U, 333U}) {
    std::vector<float> parts(whole.size(), -1);
    for (std::size_t first = 0; first < parts.size(); first += part)
      dropout_mask(1, 2, 3, 0.5, core::Span(parts).subspan(first, std::min(part, parts.size() - first)), first);
    EXPECT_EQ(parts, whole) << part;
  }
}

TEST(Dropout, RateZeroKeepsAll) { EXPECT_EQ(mask(1, 2, 3, 0, 9), std::vector<float>(9, 1.0f)); }

TEST(Dropout, DropsItsShare) {
  // Binomial(100000, 0.25): deviation 137; five are allowed.
  const auto got = mask(1, 2, 3, 0.25, 100000);
  const auto dropped = std::count(got.begin(), got.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped), 25000, 700);
}

TEST(Dropout, SeedLeaseAndNodeEachChangeIt) {
  const auto base = mask(1, 2, 3, 0.5, 64);
  EXPECT_EQ(base, mask(1, 2, 3, 0.5, 64));
  EXPECT_NE(base, mask(9, 2, 3, 0.5, 64));
  EXPECT_NE(base, mask(1, 9, 3, 0.5, 64));
  EXPECT_NE(base, mask(1, 2, 9, 0.5, 64));
}

}  // namespace
}  // namespace troupe::nn
