/// The endpoint between hosts: TCP with mutual TLS, and plain TCP on loopback. One listening socket and one I/O thread
/// per endpoint; one connection per pair of members. See handshake.hpp for how they meet and transport/tcp/protocol/frame.hpp for what is
/// said.
///
/// Bytes go from the sender's memory to the socket and from the socket to the receiver's memory; only messages of at most
/// 16 KiB that come before their receive are held, at most Credit and 1 MiB of them per peer. A long message is moved in
/// chunks of 256 KiB that take turns with those of other tags, and small frames go between them.
/// Cost: a header of 56 bytes per chunk of 256 KiB and three frames per long message, two per small one.
///
/// What was damaged on the way is never delivered: frames and payload carry hashes on plain connections, and TLS checks
/// every byte on the others. The receive it belonged to fails with Errc::corrupt, and the connection is given up.
///
/// A connection that breaks (a reset, an end without a farewell) is mended: both sides dial at once and again, and go on
/// after the last frame that the other holds, from the sender's memory; operations, credit and traffic do not notice. The
/// peer is lost when `lost_after` has passed since it was last heard, within 1 s when its process is gone (its host refuses
/// connections), and at once when it took its leave or broke the protocol. Only the two members that the session began
/// with can go on with it (handshake.hpp).
#pragma once

#include <memory>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

/// The factory behind "tcp"; reads `options.tcp`. Errc::config when that makes no sense, when TLS files are missing,
/// broken or half set, when it would listen off loopback without them, and when the port is in use.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const EndpointOptions& options);

}  // namespace troupe::transport
