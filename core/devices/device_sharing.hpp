/// Memory of a device that other processes of the host map, so that their kernels and copies read and write it where it is. Implemented by
/// CUDA's IPC (gpu/cuda/sharing.hpp), and by memory files for the host's stand-in (gpu/device/memory/host_sharing.hpp).
///
/// Thread-safe. It knows no streams: the work of one process on the memory is complete before another process is told to use it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/buffer.hpp"
#include "core/error.hpp"

namespace troupe::core {

/// Greatest length of a handle, in characters.
inline constexpr std::size_t kMostDeviceHandle = 192;

class DeviceSharing {
 public:
  virtual ~DeviceSharing() = default;

  /// Device memory that can be offered, zero-filled. What is freed is kept for later allocations until this object ends, under its handle: a peer may
  /// have mapped it. The allocator lives as long as this object.
  [[nodiscard]] virtual Allocator& memory() noexcept = 0;

  /// The name of an allocation of memory() for other processes: printable. It stays valid while this object lives. Errc::io: the device cannot
  /// export it.
  [[nodiscard]] virtual Result<std::string> handle_of(void* allocation) = 0;

  /// The allocation of this name in the address space of this process, at least `bytes` long, for kernels and copies of this device. The result
  /// keeps it mapped, also when its owner has ended (CUDA does not promise this, so owners wait until it is unmapped: docs/gpu.md). Errc::config: this device cannot map it (another driver, container or host, devices that
  /// do not reach each other), or its owner has ended; Errc::out_of_memory; Errc::io.
  [[nodiscard]] virtual Result<std::shared_ptr<void>> open(const std::string& handle, std::size_t bytes) = 0;
};

}  // namespace troupe::core
