/// What every connection of a tcp endpoint is set to. Thread rule: none of its own.
#pragma once

#include "transport/tcp/asio.hpp"
#include "transport/net/tcp_options.hpp"

namespace troupe::transport {

/// No delay for small frames, keep-alive within options.lost_after, not inherited by programs, and no more in the
/// kernel's queue than the network is about to take, so that a small frame does not wait behind megabytes. What the
/// system refuses is left as it is.
void set_options(tcp::socket& socket, const TcpOptions& options) noexcept;

}  // namespace troupe::transport
