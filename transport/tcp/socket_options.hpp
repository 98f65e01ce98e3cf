/// The socket options of every tcp connection. Thread rule: none of its own.
#pragma once

#include "transport/net/tcp_options.hpp"
#include "transport/tcp/asio.hpp"

namespace troupe::transport {

/// No delay for small frames; keep-alive within options.lost_after; not inherited by child programs; a small kernel send queue (512
/// KiB unsent), so that a small frame does not wait behind megabytes. Options that the system refuses are skipped.
void set_options(tcp::socket& socket, const TcpOptions& options) noexcept;

}  // namespace troupe::transport
