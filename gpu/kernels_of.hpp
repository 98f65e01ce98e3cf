/// core::Kernels on a device. Each call runs on the calling thread's stream, behind that thread's earlier work on the device, and returns
/// when it is done, so that any thread may use the result. Thread-safe. A device that fails throws DeviceFailed: the interface has no errors.
#pragma once

#include <memory>
#include <stdexcept>

#include "core/kernels.hpp"
#include "gpu/thread_streams.hpp"

namespace troupe::gpu {

class DeviceFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `device` and `streams` outlive the result.
[[nodiscard]] std::unique_ptr<core::Kernels> kernels_of(Device& device, ThreadStreams& streams);

}  // namespace troupe::gpu
