/// Host buffers for copies from and to device memory, kept for later messages: page-locked memory is slow to allocate. Not thread-safe:
/// blocks return under the same lock. The allocator outlives the pool; the pool outlives its blocks.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "core/buffer.hpp"
#include "core/error.hpp"

namespace troupe::transport {

class StagingPool {
 public:
  struct GiveBack {
    StagingPool* pool = nullptr;
    std::size_t bytes = 0;  // block size, a power of two
    void operator()(std::byte* memory) const noexcept { pool->give_back(memory, bytes); }
  };
  using Block = std::unique_ptr<std::byte, GiveBack>;

  /// `limit`: bytes of all blocks, in use and idle.
  StagingPool(core::Allocator& allocator, std::size_t limit) noexcept : allocator_(allocator), limit_(limit) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;
  ~StagingPool() { drop_idle(); }

  /// A block of at least `bytes` > 0, aligned to core::kAlignment, contents undefined. Errc::out_of_memory beyond the limit; otherwise the
  /// allocator's errors.
  [[nodiscard]] core::Result<Block> take(std::size_t bytes);

 private:
  void give_back(std::byte* memory, std::size_t bytes) noexcept { idle_[bytes].push_back(memory); }
  void drop_idle() noexcept;

  core::Allocator& allocator_;
  const std::size_t limit_;
  std::size_t held_ = 0;                                 // bytes in use and idle
  std::map<std::size_t, std::vector<std::byte*>> idle_;  // by size [bytes]
};

}  // namespace troupe::transport
