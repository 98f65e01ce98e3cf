/// The endpoint between threads of one process. A message is one memcpy from the sender's memory into the receiver's. The later of
/// send() and receive() makes the copy, inside its call. Nothing is staged: a message that waits for its receive costs a few dozen
/// bytes. Attaching a peer's arena returns the pointer. Thread rule and errors: see Endpoint.
#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

/// Connects the endpoints of one process; one per run and process, shared by its endpoints. Thread-safe. Cost: one mutex for all of
/// its endpoints, held while messages are matched and never while bytes are copied.
class InprocHub;
[[nodiscard]] std::shared_ptr<InprocHub> make_inproc_hub(std::string name = "hub");

/// The factory behind "inproc". Throws std::invalid_argument without `options.hub`. Addresses are valid only within the hub.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_inproc_endpoint(const EndpointOptions& options);

}  // namespace troupe::transport
