/// Memory of HostDevice that other processes map: memory files. A handle names a descriptor of the owner's process, which processes of the same
/// user open while the owner lives. Thread-safe.
///
/// It refuses what CUDA's IPC refuses: the handle of another kind of device, of a process that has ended, or of one that this process does not see
/// because it is in another container.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/devices/device_sharing.hpp"

namespace troupe::gpu::host {

/// The address ranges of this process that are such memory, its own and mapped ones.
class SharedRanges {
 public:
  void add(const void* memory, std::size_t bytes);
  void remove(const void* memory);
  [[nodiscard]] bool contains(const void* memory, std::size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> ranges_;  // bytes by address
};

class HostSharing final : public core::DeviceSharing, private core::Allocator {
 public:
  /// `name`: handles of other names are refused. At most `limit` bytes at once; `hides` as HostMemory.
  HostSharing(std::shared_ptr<SharedRanges> ranges, std::string name, std::size_t limit, bool hides);
  HostSharing(const HostSharing&) = delete;
  HostSharing& operator=(const HostSharing&) = delete;
  ~HostSharing() override;

  [[nodiscard]] core::Allocator& memory() noexcept override { return *this; }
  [[nodiscard]] core::Result<std::string> handle_of(void* allocation) override;
  [[nodiscard]] core::Result<std::shared_ptr<void>> open(const std::string& handle, std::size_t bytes) override;

 private:
  struct File {
    int descriptor = -1;
    std::size_t bytes = 0;   // of the file
    std::size_t in_use = 0;  // bytes; 0: freed, kept for the next one
  };
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;
  [[nodiscard]] tl::unexpected<core::Error> no_memory(std::size_t bytes) const;

  const std::shared_ptr<SharedRanges> ranges_;
  const std::string name_;
  const std::size_t limit_;
  const bool hides_;
  std::mutex mutex_;
  std::map<void*, File> files_;  // by the address of the mapping, which may be hidden
  std::size_t bytes_ = 0;        // of all files
};

}  // namespace troupe::gpu::host
