#include "gpu/device/block_cache.hpp"

#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::gpu {
namespace {

/// A device with `left` bytes. Its addresses are never used.
struct FakeSource {
  std::size_t left = std::size_t{1} << 30;
  int allocations = 0;
  std::map<void*, std::size_t> live;
  std::uintptr_t next = 256;

  BlockCache::Source source() {
    BlockCache::Source source;
    source.allocate = [this](std::size_t bytes) -> core::Result<void*> {
      ++allocations;
      if (bytes > left) return nullptr;
      left -= bytes;
      void* memory = reinterpret_cast<void*>(next);
      next += bytes;
      live[memory] = bytes;
      return memory;
    };
    source.free = [this](void* memory) {
      left += live.at(memory);
      live.erase(memory);
    };
    source.available = [this] { return left; };
    return source;
  }
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(BlockCache, RoundsSmallSizesToPowersOfTwoAndLargeOnesTo2MiB) {
  EXPECT_EQ(BlockCache::rounded(1), 512U);
  EXPECT_EQ(BlockCache::rounded(513), 1024U);
  EXPECT_EQ(BlockCache::rounded(kMiB - 1), kMiB);
  EXPECT_EQ(BlockCache::rounded(kMiB), 2 * kMiB);
  EXPECT_EQ(BlockCache::rounded(2 * kMiB + 1), 4 * kMiB);
}

// Another process may have mapped what was released.
TEST(BlockCache, WhatIsKeptForEverIsNotGivenBackWhenTheSourceHasNoMore) {
  FakeSource fake;
  fake.left = 4 * kMiB;
  {
    BlockCache cache(fake.source(), BlockCache::kForEver);
    void* const released = *cache.take(2 * kMiB);
    cache.release(released);
    EXPECT_EQ(cache.take(4 * kMiB).error().code, core::Errc::out_of_memory);
    EXPECT_EQ(fake.live.count(released), 1U);
    EXPECT_EQ(*cache.take(2 * kMiB), released);
  }
  EXPECT_EQ(fake.live.size(), 1U) << "in use";
}

TEST(BlockCache, KeepsNoMoreThanItsLimit) {
  FakeSource fake;
  BlockCache cache(fake.source(), 8 * kMiB);
  void* const small = *cache.take(2 * kMiB);
  void* const large = *cache.take(8 * kMiB);
  cache.release(small);
  cache.release(large);  // 10 MiB in all
  EXPECT_EQ(cache.bytes_kept(), 2 * kMiB);
  EXPECT_EQ(cache.bytes_in_use(), 0U);
  EXPECT_EQ(fake.live.size(), 1U);
  void* const other = *cache.take(6 * kMiB);
  cache.release(other);
  EXPECT_EQ(cache.bytes_kept(), 8 * kMiB);  // exactly
}

TEST(BlockCache, AReleasedBlockIsTakenAgain) {
  FakeSource fake;
  BlockCache cache(fake.source());
  void* first = *cache.take(5 * kMiB);
  EXPECT_EQ(cache.bytes_in_use(), 6 * kMiB);
  cache.release(first);
  EXPECT_EQ(cache.bytes_in_use(), 0U);
  EXPECT_EQ(cache.bytes_kept(), 6 * kMiB);
  EXPECT_EQ(*cache.take(6 * kMiB), first);
  EXPECT_EQ(fake.allocations, 1);
  EXPECT_EQ(cache.bytes_kept(), 0U);
  cache.release(first);
}

TEST(BlockCache, ABlockThatIsMuchLargerStaysKept) {
  FakeSource fake;
  BlockCache cache(fake.source());
  void* large = *cache.take(64 * kMiB);
  cache.release(large);
  void* small = *cache.take(8 * kMiB);
  EXPECT_NE(small, large);
  EXPECT_EQ(cache.bytes_kept(), 64 * kMiB);
  void* almost = *cache.take(60 * kMiB);  // 64 ≤ 60 · 9/8
  EXPECT_EQ(almost, large);
  cache.release(small);
  cache.release(almost);
}

TEST(BlockCache, KeptBlocksAreGivenBackWhenTheSourceHasNoMore) {
  FakeSource fake;
  fake.left = 10 * kMiB;
  BlockCache cache(fake.source());
  cache.release(*cache.take(8 * kMiB));
  const auto memory = cache.take(4 * kMiB);
  ASSERT_TRUE(memory);
  EXPECT_EQ(cache.bytes_kept(), 0U);
  EXPECT_EQ(fake.live.size(), 1U);
  cache.release(*memory);
}

TEST(BlockCache, OutOfMemoryNamesTheBytesThatAreWantedFreeAndInUse) {
  FakeSource fake;
  fake.left = 10 * kMiB;
  BlockCache cache(fake.source());
  void* used = *cache.take(6 * kMiB);
  const auto memory = cache.take(5'000'000);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, core::Errc::out_of_memory);
  for (const char* part : {"5000000 bytes", "4194304 are free", "uses 6291456"})
    EXPECT_NE(memory.error().message.find(part), std::string::npos) << memory.error().message;
  EXPECT_EQ(cache.bytes_in_use(), 6 * kMiB);
  cache.release(used);
}

TEST(BlockCache, AnErrorOfTheSourceIsPassedOn) {
  BlockCache::Source source;
  source.allocate = [](std::size_t) -> core::Result<void*> { return core::fail(core::Errc::io, "lost"); };
  source.free = [](void*) {};
  source.available = [] { return std::size_t{0}; };
  BlockCache cache(source);
  EXPECT_EQ(cache.take(1).error().message, "lost");
}

TEST(BlockCache, ReleasingTwiceIsABug) {
  FakeSource fake;
  BlockCache cache(fake.source());
  void* memory = *cache.take(1);
  cache.release(memory);
  EXPECT_THROW(cache.release(memory), std::invalid_argument);
}

TEST(BlockCache, ThreadsNeverShareABlock) {
  FakeSource fake;
  {
    BlockCache cache(fake.source());
    std::mutex mutex;
    std::set<void*> held;
    bool shared = false;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 500; ++i) {
          void* memory = *cache.take((t + i) % 7 * kMiB + 1);
          {
            const std::lock_guard lock(mutex);
            shared = !held.insert(memory).second || shared;
          }
          {
            const std::lock_guard lock(mutex);
            held.erase(memory);
          }
          cache.release(memory);
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_FALSE(shared);
    EXPECT_EQ(cache.bytes_in_use(), 0U);
  }
  EXPECT_TRUE(fake.live.empty());
}

}  // namespace
}  // namespace troupe::gpu
