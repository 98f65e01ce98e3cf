/// Memory of HostDevice: plain process memory whose bounds are known. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/buffer.hpp"

namespace troupe::gpu::host {

/// Zero-filled, aligned to 256 bytes, exactly as long as asked for: AddressSanitizer sees an access behind the end.
class HostMemory final : public core::Allocator {
 public:
  /// At most `limit` bytes at once.
  HostMemory(core::MemorySpace space, std::size_t limit) noexcept : space_(space), limit_(limit) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return space_; }
  /// Errc::out_of_memory: beyond the limit, or the process has no more.
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

  /// Whether all of `bytes` bytes at `memory` belong to one allocation that lives.
  [[nodiscard]] bool contains(const void* memory, std::size_t bytes) const;
  [[nodiscard]] std::size_t live_bytes() const;

 private:
  core::MemorySpace space_;
  std::size_t limit_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> live_;  // bytes by address
  std::size_t live_bytes_ = 0;
};

}  // namespace troupe::gpu::host
