/// Memory of HostDevice: plain process memory whose bounds are known. Its addresses may be hidden: such an address is none that a process can
/// have, and only found() leads to the memory. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/buffer.hpp"

namespace troupe::gpu::host {

/// Where the memory of this address is: for HostDevice alone.
[[nodiscard]] void* found(const void* address) noexcept;
/// The same for every address in an object of `bytes` bytes that is aligned to 8, in place.
void find_addresses(void* object, std::size_t bytes) noexcept;
/// The hidden address of `memory`.
[[nodiscard]] void* hidden(void* memory) noexcept;

/// Zero-filled, aligned to 256 bytes, exactly as long as asked for: AddressSanitizer sees an access behind the end.
class HostMemory final : public core::Allocator {
 public:
  /// At most `limit` bytes at once. `hides`: its addresses are hidden.
  HostMemory(core::MemorySpace space, std::size_t limit, bool hides = false) noexcept
      : space_(space), limit_(limit), hides_(hides) {}
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
  bool hides_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> live_;  // bytes by address
  std::size_t live_bytes_ = 0;
};

}  // namespace troupe::gpu::host
