/// What StagedEndpoint needs of a device: copies between its memory and the host's, and the host memory that they are fast
/// with. A module (troupe_cuda.so) holds an implementation for CUDA; make_device_copier() loads it.
///
/// Thread-safe but for the destructor, which waits for the copies under way. No call waits for one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/buffer.hpp"
#include "core/error.hpp"

namespace troupe::transport {

class DeviceCopier {
 public:
  /// Called exactly once for each copy, from a thread of the copier's or from within the call: the memories are free, and what was
  /// copied is where it belongs unless there is an error (Errc::io). Must not block, throw or call the copier.
  using Done = std::function<void(core::Result<void>)>;

  virtual ~DeviceCopier() = default;

  /// Page-locked host memory. Lives as long as the copier.
  [[nodiscard]] virtual core::Allocator& pinned() noexcept = 0;
  /// Copies of one direction are made in the order of the calls. The device's memory must be ready: copies know no streams of
  /// others. Both memories are lent until `done`.
  virtual void to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) = 0;
  virtual void to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) = 0;
};

/// What a module exports, as "troupe_copier_version" and "troupe_make_copier". Raise the version with every change of this
/// header: a module that another build left behind is refused.
inline constexpr int kCopierVersion = 1;
using CopierVersion = int();
using MakeCopier = void(int device, core::Result<std::shared_ptr<DeviceCopier>>& made);

/// Loads troupe_cuda.so and makes a copier of that device, for EndpointOptions::device. Errc::config when it cannot be loaded, or there is
/// no such device. One thread at a time.
[[nodiscard]] core::Result<std::shared_ptr<DeviceCopier>> make_device_copier(int device);

}  // namespace troupe::transport
