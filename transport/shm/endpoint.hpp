/// The endpoint of members that are processes of one host. Frames travel over a Unix-domain socket per pair; a payload
/// that does not fit into a frame is copied once, by the receiver, straight from the sender's memory
/// (process_vm_readv), or twice through a small window of shared memory where the kernel forbids that (ptrace scope,
/// containers): found out at each connect. Arenas of mapped_memory() are memory files that travel as descriptors.
///
/// Nothing is left behind, however a process ends: sockets live in the abstract namespace (of the network namespace:
/// members of one host that do not share it cannot meet), memory files have no name, and both end with the last
/// process that holds them. A peer's death is seen at once, by its socket and by its process descriptor.
///
/// Who gets in: processes of the same user that were told the address, which holds a random secret. What a peer says is
/// checked all the same: one that breaks the protocol is lost, and is named. It cannot make a mapping fail under us
/// (memory files are sealed against shrinking) but it can write into arenas that it was given the key of.
#pragma once

#include <memory>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

/// The factory behind "shm". Errc::io when the process has no descriptor left. One thread per endpoint, which sleeps
/// while nothing moves and makes all copies; an endpoint does not survive fork().
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_shm_endpoint(const EndpointOptions& options);

}  // namespace troupe::transport
