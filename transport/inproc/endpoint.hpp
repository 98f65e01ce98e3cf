/// The endpoint of members that are threads of one process. A message is one memcpy from the sender's memory into the
/// receiver's, made by whichever of the two comes second, inside its send() or receive(); nothing is staged, so a
/// message that nobody has received costs a few dozen bytes. Mapping a peer's arena hands out the pointer.
#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

/// Where endpoints find each other: one per run and process, shared by them. Thread-safe. Cost: one mutex for all of
/// its endpoints, held for matching and never while bytes are copied.
class InprocHub;
[[nodiscard]] std::shared_ptr<InprocHub> make_inproc_hub(std::string name = "hub");

/// The factory behind "inproc". `options.hub` is required: std::invalid_argument without one. Addresses are good
/// within the hub only.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_inproc_endpoint(const EndpointOptions& options);

}  // namespace troupe::transport
