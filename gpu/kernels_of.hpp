/// core::Kernels on a device. Each call runs on the stream that the calling thread has at the time (ThreadStreams), behind the thread's earlier
/// work there, and returns when it is done, so that any thread may use the result; finish() waits for that thread's other work, such as a
/// replica's apply().
/// Thread-safe. A device that fails throws core::KernelsFailed.
#pragma once

#include <memory>

#include "core/kernels.hpp"
#include "gpu/thread_streams.hpp"

namespace troupe::gpu {

/// `device` and `streams` outlive the result.
[[nodiscard]] std::unique_ptr<core::Kernels> kernels_of(Device& device, ThreadStreams& streams);

}  // namespace troupe::gpu
