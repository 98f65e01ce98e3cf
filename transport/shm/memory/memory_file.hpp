/// Unnamed memory that processes share by a descriptor: memfd, sealed so that its size never changes. Internal to shm. Thread rule:
/// plain values.
#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport {

/// An owned range of address space; the destructor unmaps it.
class ShmMapping {
 public:
  ShmMapping() = default;
  ShmMapping(void* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  ShmMapping(ShmMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ShmMapping& operator=(ShmMapping&& other) noexcept;
  ~ShmMapping() { reset(); }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void reset() noexcept;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct ShmMemoryFile {
  core::FileDescriptor descriptor;
  ShmMapping mapping;
};

/// Makes a file of `bytes` (above 0) zeros and maps it. All pages are allocated at once, so no later access faults for lack of
/// memory. From 4 MiB on it uses huge pages where the kernel has some, because exchanges stream through whole arenas.
/// Errc::out_of_memory, Errc::io.
[[nodiscard]] core::Result<ShmMemoryFile> make_memory_file(std::size_t bytes);

/// Maps a peer's file. Errc::corrupt when it has fewer than `bytes` or is not sealed. Pages are mapped at once.
[[nodiscard]] core::Result<ShmMapping> map_memory_file(const core::FileDescriptor& descriptor, std::size_t bytes);

}  // namespace troupe::transport
