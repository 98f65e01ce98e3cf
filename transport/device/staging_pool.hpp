/// Host buffers that device memory is copied through, kept for the next message: page-locked memory is slow to get.
/// Not thread-safe; its blocks go back under the same lock. The allocator must outlive it, and it its blocks.
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
    std::size_t bytes = 0;  // of the block: a power of two
    void operator()(std::byte* memory) const noexcept { pool->give_back(memory, bytes); }
  };
  using Block = std::unique_ptr<std::byte, GiveBack>;

  /// `limit`: of all bytes, in use and idle.
  StagingPool(core::Allocator& allocator, std::size_t limit) noexcept : allocator_(allocator), limit_(limit) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;
  ~StagingPool() { drop_idle(); }

  /// At least `bytes` > 0, aligned to core::kAlignment, contents undefined. Errc::out_of_memory beyond the limit, or what the
  /// allocator says.
  [[nodiscard]] core::Result<Block> take(std::size_t bytes);
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_; }  // in use and idle

 private:
  void give_back(std::byte* memory, std::size_t bytes) noexcept { idle_[bytes].push_back(memory); }
  void drop_idle() noexcept;

  core::Allocator& allocator_;
  const std::size_t limit_;
  std::size_t held_ = 0;
  std::map<std::size_t, std::vector<std::byte*>> idle_;  // by size
};

}  // namespace troupe::transport
