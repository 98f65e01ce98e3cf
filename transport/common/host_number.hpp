/// Tells whether two processes are on one host, so that what moves between them stays in its memory.
#pragma once

#include <cstdint>

namespace troupe::transport {

/// Equal for all processes of one host and network namespace, different for any others but by chance. 0: it cannot be
/// known, and nobody is on the same host. Thread-safe.
[[nodiscard]] std::uint64_t host_number() noexcept;

}  // namespace troupe::transport
