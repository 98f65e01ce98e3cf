/// Executes kernels on the host, as dispatch() describes them for a device (gpu/kernels/launch/dispatch.hpp): the phases of a block thread
/// after thread. So each body's arithmetic, its cut into blocks and its phases are those of a device.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu::host {

/// In what order blocks, and the threads of a phase, run. A right body gives the same bits in every order.
enum class ThreadOrder : std::uint8_t { ascending, descending };

/// Shared memory is filled with a pattern first: a body that reads what nobody wrote gives nonsense. Thread-safe.
void execute(const Kernel& kernel, ThreadOrder order = ThreadOrder::ascending);

}  // namespace troupe::gpu::host
