/// Resolves a host name for a coroutine of the I/O thread. A numeric address is resolved at once. A name is resolved on a detached
/// thread of its own: Asio has only one resolver thread, and a silent name server would block every other call, and close(). Thread
/// rule: the I/O thread.
#pragma once

#include <memory>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/net/address.hpp"
#include "transport/tcp/asio.hpp"
#include "transport/tcp/handshake_steps.hpp"

namespace troupe::transport {

using TcpEndpoints = std::vector<tcp::endpoint>;

/// At least one address. Errc::peer_lost after `most`, or when `call` is closed. Errc::config: there is no such host.
[[nodiscard]] asio::awaitable<core::Result<TcpEndpoints>> look_up(std::shared_ptr<TcpCall> call, HostPort at,
                                                                  core::Duration most);

}  // namespace troupe::transport
