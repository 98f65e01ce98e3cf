/// Runs CAF's protocol over a TlsConnection. Thread rule: made on any thread, used on CAF's I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <caf/io/scribe.hpp>

#include "actors/control/peers.hpp"
#include "transport/net/tls_connection.hpp"

namespace caf::io::network {
class default_multiplexer;
}

namespace troupe::actors {

/// `peers`: of this process. `on_refused` gets the reason, on the I/O thread, when the connection ends before the peer's handshake is
/// complete, or at any time because the peer breaks the protocol. It must not block or throw.
[[nodiscard]] caf::io::scribe_ptr make_caf_connection(caf::io::network::default_multiplexer& multiplexer,
                                                      transport::TlsConnection wire,
                                                      std::shared_ptr<ControlPeers> peers,
                                                      std::function<void(const core::Error& why)> on_refused);

}  // namespace troupe::actors
