#include "data/sources/block_cache.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

/// A loader that counts its calls, of blocks of `bytes` bytes.
struct CountedLoad {
  std::size_t bytes;
  std::atomic<int> calls = 0;
  core::Result<BlockCache::Bytes> operator()() {
    ++calls;
    return BlockCache::Bytes(bytes);
  }
};

TEST(BlockCacheTest, TheBlockUsedLongestAgoMakesRoom) {
  BlockCache cache(250);
  CountedLoad load{100};
  const auto get = [&](std::size_t file) {
    const int before = load.calls;
    EXPECT_TRUE(cache.get({file, 0}, [&] { return load(); }));
    return load.calls != before;
  };
  EXPECT_TRUE(get(1));
  EXPECT_TRUE(get(2));
  EXPECT_FALSE(get(1));
  EXPECT_TRUE(get(3));  // 300 bytes: 2 goes
  EXPECT_FALSE(get(1));
  EXPECT_FALSE(get(3));
  EXPECT_TRUE(get(2));
}

TEST(BlockCacheTest, OneBlockIsKeptHoweverLarge) {
  BlockCache cache(10);
  CountedLoad load{100};
  const auto block = cache.get({0, 0}, [&] { return load(); }).value();
  EXPECT_EQ(cache.get({0, 0}, [&] { return load(); }).value(), block);
  EXPECT_EQ(load.calls, 1);
  ASSERT_TRUE(cache.get({0, 1}, [&] { return load(); }));
  EXPECT_EQ(block->size(), 100U);  // who holds it keeps it
}

TEST(BlockCacheTest, ErrorsAreNotKept) {
  BlockCache cache(1000);
  CountedLoad load{100};
  const auto failed = cache.get({0, 0}, [] { return core::fail(core::Errc::data, "damaged"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "damaged");
  EXPECT_TRUE(cache.get({0, 0}, [&] { return load(); }));
}

TEST(BlockCacheTest, ManyThreadsLoadABlockOnce) {
  BlockCache cache(1 << 20);
  CountedLoad load{100};
  constexpr int kThreads = 8, kBlocks = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (std::int64_t block = 0; block < kBlocks; ++block) EXPECT_TRUE(cache.get({0, block}, [&] { return load(); }));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(load.calls, kBlocks);
}

}  // namespace
}  // namespace troupe::data
