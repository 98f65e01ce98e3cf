/// The addresses that a host name stands for, for a coroutine of the I/O thread. What is a number is known at once. A name is
/// looked up on a thread of its own, which nobody waits for: Asio has one such thread for all, and a name server that is
/// silent would hold up every other call, and close(). Thread rule: the I/O thread.
#pragma once

#include <memory>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/net/address.hpp"
#include "transport/tcp/asio.hpp"
#include "transport/tcp/greeting.hpp"

namespace troupe::transport {

using TcpEndpoints = std::vector<tcp::endpoint>;

/// At least one. Ends after `most`, or when `call` is closed, with Errc::peer_lost; Errc::config: there is no such host.
[[nodiscard]] asio::awaitable<core::Result<TcpEndpoints>> look_up(std::shared_ptr<TcpCall> call, HostPort at,
                                                                  core::Duration most);

}  // namespace troupe::transport
