#include "data/order/sampler.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace troupe::data {
namespace {

using Permutation = std::vector<std::uint32_t>;

Permutation identity(std::size_t size) {
  Permutation order(size);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

TEST(EpochPermutationTest, VisitsEverySampleOnce) {
  for (const std::int64_t size : {0, 1, 2, 3, 10, 1000}) {
    auto order = epoch_permutation(1, 0, size);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, identity(static_cast<std::size_t>(size)));
  }
}

TEST(EpochPermutationTest, DependsOnSeedAndEpochAlone) {
  const auto order = epoch_permutation(7, 3, 500);
  EXPECT_EQ(order, epoch_permutation(7, 3, 500));
  EXPECT_NE(order, epoch_permutation(8, 3, 500));
  EXPECT_NE(order, epoch_permutation(7, 4, 500));
}

/// Fisher-Yates from the back: position left − 1 is exchanged with one drawn from [0, left).
TEST(EpochPermutationTest, IsFisherYatesOverTheShuffleStream) {
  core::Random random(42, core::Purpose::shuffle, 5);
  Permutation expected{0, 1, 2, 3};
  std::swap(expected[3], expected[random.below(4)]);
  std::swap(expected[2], expected[random.below(3)]);
  std::swap(expected[1], expected[random.below(2)]);
  EXPECT_EQ(epoch_permutation(42, 5, 4), expected);
}

TEST(EpochPermutationTest, AllOrdersAreEquallyLikely) {
  // 6 orders of 3 samples, 6,000 epochs: 1,000 each, deviation sqrt(6000 · 1/6 · 5/6) = 29; five are allowed.
  std::map<Permutation, int> seen;
  for (std::uint32_t epoch = 0; epoch < 6000; ++epoch) ++seen[epoch_permutation(1, epoch, 3)];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 145);
}

TEST(SamplerTest, GivesTheEpochsPermutation) {
  const Sampler sampler(7, 100, Order::shuffled);
  EXPECT_EQ(*sampler.permutation(0), epoch_permutation(7, 0, 100));
  EXPECT_EQ(*sampler.permutation(1), epoch_permutation(7, 1, 100));
  EXPECT_EQ(*sampler.permutation(0), epoch_permutation(7, 0, 100));
}

TEST(SamplerTest, PermutationOfACallerStaysUnchanged) {
  const Sampler sampler(7, 100, Order::shuffled);
  const auto first = sampler.permutation(0);
  EXPECT_EQ(sampler.permutation(0), first);  // the same memory
  (void)sampler.permutation(1);
  EXPECT_EQ(*first, epoch_permutation(7, 0, 100));
}

TEST(SamplerTest, SequentialIsTheDataSetsOrder) {
  const Sampler sampler(7, 100, Order::sequential);
  EXPECT_EQ(*sampler.permutation(0), identity(100));
  EXPECT_EQ(*sampler.permutation(9), identity(100));
}

TEST(ShardWindowsTest, EverySampleOncePerEpochInWindowsOfFewFiles) {
  core::Random random(8, core::Purpose::test, 0);
  for (int k = 0; k < 100; ++k) {
    ShardWindows shards{{0}, 1 + static_cast<std::int64_t>(random.below(60))};
    std::int64_t size = 0;
    for (auto files = 1 + random.below(12); files > 0; --files) {
      if (size > 0) shards.begins.push_back(size);
      size += 1 + static_cast<std::int64_t>(random.below(40));
    }
    auto order = epoch_permutation(5, 3, size, shards);
    EXPECT_EQ(order, epoch_permutation(5, 3, size, shards));
    std::ranges::sort(order);
    EXPECT_EQ(order, identity(size));
  }
}

TEST(ShardWindowsTest, AWindowHasTheSamplesOfConsecutiveFiles) {
  // 20 files of 10 samples, windows of 20: each window has two whole files.
  ShardWindows shards{{}, 20};
  for (std::int64_t file = 0; file < 20; ++file) shards.begins.push_back(10 * file);
  const auto order = epoch_permutation(1, 0, 200, shards);
  for (std::size_t window = 0; window < 10; ++window) {
    std::set<std::uint32_t> files;
    for (std::size_t i = 0; i < 20; ++i) files.insert(order[20 * window + i] / 10);
    EXPECT_EQ(files.size(), 2u);
  }
  EXPECT_NE(order, epoch_permutation(1, 1, 200, shards));
  EXPECT_FALSE(std::ranges::is_sorted(order.begin(), order.begin() + 20));
  EXPECT_EQ(epoch_permutation(1, 0, 200, {shards.begins, 0}), epoch_permutation(1, 0, 200));
  EXPECT_EQ(epoch_permutation(1, 0, 200, {{}, 20}), epoch_permutation(1, 0, 200));
}

TEST(SamplerTest, ManyThreadsGetTheSamePermutation) {
  const Sampler sampler(3, 5000, Order::shuffled);
  std::vector<int> right(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < right.size(); ++t)
      threads.emplace_back([&, t] {
        for (std::uint32_t i = 0; i < 20; ++i) {
          const auto epoch = static_cast<std::uint32_t>((i + t) % 3);
          right[t] += *sampler.permutation(epoch) == epoch_permutation(3, epoch, 5000);
        }
      });
  }
  EXPECT_EQ(right, (std::vector<int>{20, 20, 20, 20}));
}

TEST(SamplerTest, RefusesMoreThan32Bits) {
  EXPECT_THROW((void)epoch_permutation(1, 0, std::int64_t{1} << 32), std::length_error);
}

}  // namespace
}  // namespace troupe::data
