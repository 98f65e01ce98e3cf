#include "gpu/device/block_cache.hpp"

#include <bit>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

constexpr std::size_t kSmallest = 512;
constexpr std::size_t kSmall = std::size_t{1} << 20;
constexpr std::size_t kLargeUnit = std::size_t{2} << 20;

}  // namespace

BlockCache::~BlockCache() { trim_locked(); }

std::size_t BlockCache::rounded(std::size_t bytes) noexcept {
  if (bytes <= kSmallest) return kSmallest;
  if (bytes < kSmall) return std::bit_ceil(bytes);
  if (bytes > std::numeric_limits<std::size_t>::max() - kLargeUnit) return bytes;  // no source has it
  return (bytes + kLargeUnit - 1) / kLargeUnit * kLargeUnit;
}

core::Result<void*> BlockCache::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  const auto found = kept_.lower_bound(size);
  if (found != kept_.end() && found->first - size <= size / 8) {
    const auto [kept_size, memory] = *found;
    kept_.erase(found);
    bytes_kept_ -= kept_size;
    bytes_in_use_ += kept_size;
    in_use_.emplace(memory, kept_size);
    return memory;
  }
  auto memory = source_.allocate(size);
  if (memory && !*memory && !kept_.empty() && most_kept_ != kForEver) {
    trim_locked();
    memory = source_.allocate(size);
  }
  if (!memory) return memory;
  if (!*memory)
    return core::fail(
        core::Errc::out_of_memory,
        fmt::format("the device has no {} bytes left: {} are free, this process uses {}; take a smaller batch, fewer "
                    "workers on a device, or train.recompute",
                    bytes, source_.available(), bytes_in_use_));
  bytes_in_use_ += size;
  in_use_.emplace(*memory, size);
  return memory;
}

void BlockCache::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = in_use_.find(memory);
  if (found == in_use_.end()) throw std::invalid_argument("a block of memory is released that is not in use");
  const std::size_t size = found->second;
  in_use_.erase(found);
  bytes_in_use_ -= size;
  if (size > most_kept_ || bytes_kept_ > most_kept_ - size) return source_.free(memory);
  bytes_kept_ += size;
  kept_.emplace(size, memory);
}

void BlockCache::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void BlockCache::trim_locked() {
  for (const auto& [size, memory] : kept_) source_.free(memory);
  kept_.clear();
  bytes_kept_ = 0;
}

std::size_t BlockCache::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return bytes_in_use_;
}

std::size_t BlockCache::bytes_kept() const {
  const std::lock_guard lock(mutex_);
  return bytes_kept_;
}

}  // namespace troupe::gpu
