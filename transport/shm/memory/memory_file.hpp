/// Memory that processes share by a descriptor and that has no name: memfd, sealed so that it never changes its size.
/// Internal to shm. Thread rule: plain values.
#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport {

/// A stretch of address space, unmapped at its end.
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
  Descriptor descriptor;
  ShmMapping mapping;
};

/// `bytes` (above 0) of zeros, all of them there: nothing faults for lack of memory later. From 4 MiB on in huge pages
/// where the kernel has some, because exchanges stream through whole arenas. Errc::out_of_memory, Errc::io.
[[nodiscard]] core::Result<ShmMemoryFile> make_memory_file(std::size_t bytes);

/// Maps a peer's, which must hold `bytes` at least and be sealed: otherwise Errc::corrupt. Pages are mapped at once.
[[nodiscard]] core::Result<ShmMapping> map_memory_file(const Descriptor& descriptor, std::size_t bytes);

}  // namespace troupe::transport
