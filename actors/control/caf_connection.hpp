/// Makes CAF speak over a Wire. Thread rule: made on any thread, used on CAF's I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <caf/io/scribe.hpp>

#include "transport/net/connection.hpp"
#include "actors/control/peers.hpp"

namespace caf::io::network {
class default_multiplexer;
}

namespace troupe::actors {

/// `peers`: of this process. `on_refused` is told why, on the I/O thread, when the connection ends before the other end's handshake has arrived, or at
/// any time because the other end breaks the protocol; it must not block or throw.
[[nodiscard]] caf::io::scribe_ptr make_scribe(caf::io::network::default_multiplexer& multiplexer, Wire wire,
                                              std::shared_ptr<WirePeers> peers,
                                              std::function<void(const core::Error& why)> on_refused);

}  // namespace troupe::actors
