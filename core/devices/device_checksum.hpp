/// Checksums of what is in a device's memory, computed there: XXH3-64, as transport/common/wire_hash.hpp computes it on the host. With them messages
/// between hosts go straight from and to device memory and are checked nevertheless. Implemented over any Device in gpu/stream_checksum.hpp.
///
/// Thread-safe, except the destructor, which waits for the sums under way. No other call waits for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/error.hpp"

namespace troupe::core {

class DeviceChecksum {
 public:
  /// Called exactly once per sum, from a thread of the object or within the call. The memory is then free. Errc::io, Errc::out_of_memory: the device
  /// failed. Must not block, throw or call the object.
  using Done = std::function<void(Result<std::uint64_t>)>;

  virtual ~DeviceChecksum() = default;

  /// REQUIRES bytes > 240. The caller's work on the memory is complete: a sum does not wait for other streams. The memory is lent until `done`.
  virtual void sum(const std::byte* device, std::size_t bytes, Done done) = 0;
};

}  // namespace troupe::core
