/// What StagedEndpoint needs of a device: copies between device memory and host memory, and host memory with which these copies are fast.
/// The module troupe_cuda.so implements it for CUDA; make_device_copier() loads the module.
///
/// Thread-safe, except the destructor, which waits for the copies under way. No other call waits for a copy.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/buffer.hpp"
#include "core/error.hpp"

namespace troupe::transport {

class DeviceCopier {
 public:
  /// Called exactly once per copy, from a thread of the copier or within the call. Both memories are then free. Without an error the copy
  /// is complete; the error is Errc::io. Must not block, throw or call the copier.
  using Done = std::function<void(core::Result<void>)>;

  virtual ~DeviceCopier() = default;

  /// Page-locked host memory. The allocator lives as long as the copier.
  [[nodiscard]] virtual core::Allocator& pinned() noexcept = 0;
  /// Copies of one direction run in the order of the calls. The caller's work on the device memory must be complete: copies do not wait for
  /// other streams. Both memories are lent until `done`.
  virtual void to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) = 0;
  virtual void to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) = 0;
};

/// The symbols that a module exports: "troupe_copier_version" and "troupe_make_copier". Raise the version with every change of this header:
/// the loader refuses a module of another version.
inline constexpr int kCopierVersion = 1;
using CopierVersion = int();
using MakeCopier = void(int device, core::Result<std::shared_ptr<DeviceCopier>>& made);

/// Loads troupe_cuda.so and makes a copier for `device`, for EndpointOptions::device. Errc::config when the module cannot be loaded or the
/// device does not exist. One thread at a time.
[[nodiscard]] core::Result<std::shared_ptr<DeviceCopier>> make_device_copier(int device);

}  // namespace troupe::transport
