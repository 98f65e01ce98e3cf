/// Vectors that a guest maps too: memory without a name (memfd), one file for each vector. Thread-safe. Outlives its memory.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "core/buffer.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::guest {

class GuestVectors final : public core::Allocator {
 public:
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

  /// The file of the memory that begins at `memory`; -1: it is not of this allocator. Valid until the memory is freed.
  [[nodiscard]] int descriptor_of(const void* memory) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, core::FileDescriptor> files_;
};

}  // namespace troupe::guest
