/// Copies between a device's memory and host memory that need no thread of the caller, and host memory with which they are fast: what staging
/// of messages needs of a device (transport/device/). Implemented for CUDA in the module troupe_cuda.so, and over any Device in
/// gpu/stream_copier.hpp.
///
/// Thread-safe, except the destructor, which waits for the copies under way. No other call waits for a copy.
#pragma once

#include <cstddef>
#include <functional>

#include "core/buffer.hpp"
#include "core/error.hpp"

namespace troupe::core {

class DeviceCopier {
 public:
  /// Called exactly once per copy, from a thread of the copier or within the call. Both memories are then free. Without an error the copy
  /// is complete; the error is Errc::io. Must not block, throw or call the copier.
  using Done = std::function<void(Result<void>)>;

  virtual ~DeviceCopier() = default;

  /// Page-locked host memory. The allocator lives as long as the copier.
  [[nodiscard]] virtual Allocator& pinned() noexcept = 0;
  /// Copies of one direction run in the order of the calls. The caller's work on the device memory must be complete: copies do not wait for
  /// other streams. Both memories are lent until `done`.
  virtual void to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) = 0;
  virtual void to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) = 0;

  /// Whether libraries that know such devices (a CUDA-aware UCX or MPI) may be given addresses of its memory.
  [[nodiscard]] virtual bool is_known_to_libraries() const noexcept { return false; }
  /// Makes the device the calling thread's current one, before calls of such a library that name its memory.
  virtual void enter() const noexcept {}
};

}  // namespace troupe::core
