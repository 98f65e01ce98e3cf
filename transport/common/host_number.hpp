/// Identifies the host, so that two processes can tell whether they share one and their messages stay in its memory.
#pragma once

#include <cstdint>

namespace troupe::transport {

/// Equal for all processes of one host and network namespace; different for others, except by chance. 0: unknown; then no peer
/// counts as being on this host. Thread-safe.
[[nodiscard]] std::uint64_t host_number() noexcept;

}  // namespace troupe::transport
