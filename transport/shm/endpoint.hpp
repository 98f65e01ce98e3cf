/// The endpoint between processes of one host. Frames travel over one Unix-domain socket per pair. A payload that does not fit into
/// a frame is copied once, by the receiver, from the sender's memory (process_vm_readv). Where the kernel forbids that (ptrace
/// scope, containers) it is copied twice, through a small window of shared memory; each connect tests it. Arenas of mapped_memory()
/// are memory files that travel as descriptors.
///
/// Nothing remains after a process ends in any way. Sockets are in the abstract namespace of the network namespace, so members of
/// one host that do not share it cannot connect. Memory files have no name. Both end with the last process that holds them. A
/// peer's death is seen at once, by its socket and by its process descriptor.
///
/// Access: processes of the same user that know the address, which contains a random secret. Frames are checked all the same: a
/// peer that breaks the protocol is lost, and the error names it. A peer cannot make a mapping fault (memory files are sealed
/// against shrinking), but it can write into arenas whose key it has.
#pragma once

#include <memory>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

/// The factory behind "shm". Errc::io: the process has no descriptor left. One thread per endpoint; it sleeps while nothing moves
/// and makes all copies. An endpoint does not survive fork().
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_shm_endpoint(const EndpointOptions& options);

}  // namespace troupe::transport
