/// Keeps freed blocks of device memory for later allocations, because a device's own allocation is slow and stops its work. Thread-safe.
///
/// Sizes are rounded up: below 1 MiB to a power of two of at least 512 bytes, from there to a multiple of 2 MiB. An allocation takes the
/// smallest kept block that is not larger than its rounded size by more than an eighth. When the source has no more, all kept blocks are
/// given back and the source is asked once more, unless the cache keeps for ever. A block that would make the kept ones more than `most_kept` bytes goes back to the source at
/// once: other processes may use the same device.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>

#include "core/error.hpp"

namespace troupe::gpu {

class BlockCache {
 public:
  /// The memory itself. Calls come one at a time. `allocate` returns null when there is no more; its memory is aligned to 256 bytes.
  struct Source {
    std::function<core::Result<void*>(std::size_t bytes)> allocate;
    std::function<void(void* memory)> free;
    std::function<std::size_t()> available;  // bytes that could be allocated now, for messages
  };

  /// `most_kept` of one that keeps for ever: until trim(), or its end. For memory that other processes may use after its release.
  static constexpr std::size_t kForEver = std::numeric_limits<std::size_t>::max();

  explicit BlockCache(Source source, std::size_t most_kept = kForEver - 1)
      : source_(std::move(source)), most_kept_(most_kept) {}
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  /// Gives kept blocks back. REQUIRES that every block was released.
  ~BlockCache();

  /// At least `bytes` bytes, with any contents. Errc::out_of_memory names the bytes, those in use by this process and those available; other
  /// errors are the source's.
  [[nodiscard]] core::Result<void*> take(std::size_t bytes);
  /// Keeps a block of take(), or gives it back. Bug (std::invalid_argument): not a block that is in use.
  void release(void* memory);
  /// Gives all kept blocks back to the source.
  void trim();

  [[nodiscard]] std::size_t bytes_in_use() const;
  [[nodiscard]] std::size_t bytes_kept() const;
  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept;

 private:
  void trim_locked();

  Source source_;
  const std::size_t most_kept_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, void*> kept_;         // by size
  std::unordered_map<void*, std::size_t> in_use_;  // size
  std::size_t bytes_in_use_ = 0;
  std::size_t bytes_kept_ = 0;
};

}  // namespace troupe::gpu
