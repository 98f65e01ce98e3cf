/// The endpoint between hosts: TCP with mutual TLS, and plain TCP on loopback. One listening socket and one I/O thread per
/// endpoint; one connection per pair of members. handshake.hpp describes how members connect, transport/tcp/protocol/frame.hpp the
/// frames.
///
/// Bytes go from the sender's memory to the socket and from the socket to the receiver's memory. Only messages of at most 16 KiB
/// that come before their receive are buffered: at most Credit and 1 MiB of them per peer. A long message moves in chunks of 256
/// KiB. Chunks of different tags take turns, and small frames go between them. Cost: a header of 56 bytes per chunk of 256 KiB and
/// three more frames per long message, two frames per small one.
///
/// Damaged bytes are never delivered. On plain connections frames and payload carry hashes; on the others TLS checks every byte. A
/// damaged message fails its receive with Errc::corrupt, and the connection is given up.
///
/// A broken connection (a reset, or an end without bye) is mended. Both sides connect again, repeatedly, and continue after the
/// last frame that the other holds, from the sender's memory. Operations, credit and traffic are not affected. The peer is lost
/// when nothing was received from it for `lost_after`, within 1 s when its process has ended (its host refuses connections), and at
/// once when it sent bye or broke the protocol. Only the two members that began the session can continue it (handshake.hpp).
#pragma once

#include <memory>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

/// The factory behind "tcp"; reads `options.tcp`. Errc::config: invalid addresses; TLS files missing, broken or incomplete; a
/// listening address off loopback without TLS; a port that is in use. Throws std::invalid_argument unless 0 < heartbeat <=
/// lost_after.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const EndpointOptions& options);

}  // namespace troupe::transport
