/// Names, addresses and connections, each within a deadline. Thread rule: none of its own; each call blocks its thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "transport/net/connection.hpp"
#include "transport/net/address.hpp"

namespace troupe::actors {

using WireClock = std::chrono::steady_clock;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] bool loopback() const noexcept;
};
[[nodiscard]] std::string to_text(const SocketAddress& address);       // "[::1]:4242"
[[nodiscard]] std::string numeric_host(const SocketAddress& address);  // "::1"
[[nodiscard]] std::string to_text(const transport::HostPort& where);   // "node1:4242"

/// All addresses of `where`, at least one. Plain (`tls` false) all of them must be loopback. Errc::config for a host that is
/// unknown, or not loopback; Errc::timeout; Errc::interrupted within a twentieth of a second of `stop`.
[[nodiscard]] core::Result<std::vector<SocketAddress>> find_addresses(const transport::HostPort& where, bool tls,
                                                                      WireClock::time_point deadline,
                                                                      const std::stop_token& stop = {});

/// One line for a connection that ended before both ends knew who the other is.
[[nodiscard]] std::string refused(const transport::HostPort& where, bool tls, const core::Error& why);

/// A connection to the first address that answers, with the TLS handshake done and the certificate's names checked.
/// Errc::peer_lost: nobody is there, or it hung up; Errc::timeout; Errc::config: TLS was refused, here or there;
/// Errc::interrupted as find_addresses.
[[nodiscard]] core::Result<Wire> dial(const transport::HostPort& where, SSL_CTX* tls, WireClock::time_point deadline,
                                      const std::stop_token& stop = {});

}  // namespace troupe::actors
