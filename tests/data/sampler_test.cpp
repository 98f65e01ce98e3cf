#include "data/sampler.hpp"

#include <algorithm>
#include <numeric>
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
