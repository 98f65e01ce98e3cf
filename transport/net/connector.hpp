/// Resolves names and connects, each call within a deadline. Thread rule: no thread of its own; each call blocks the calling thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "transport/net/address.hpp"
#include "transport/net/tls_connection.hpp"

namespace troupe::transport {

using ConnectClock = std::chrono::steady_clock;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] bool loopback() const noexcept;
};
[[nodiscard]] std::string to_text(const SocketAddress& address);       // "[::1]:4242"
[[nodiscard]] std::string numeric_host(const SocketAddress& address);  // "::1"
[[nodiscard]] std::string to_text(const HostPort& where);              // "node1:4242"

/// All addresses of `where`, at least one. Without `tls` all of them must be loopback. Errc::config for an unknown host, or one that is not
/// loopback; Errc::timeout; Errc::interrupted at most 50 ms after a request of `stop`.
[[nodiscard]] core::Result<std::vector<SocketAddress>> find_addresses(const HostPort& where, bool tls,
                                                                      ConnectClock::time_point deadline,
                                                                      const std::stop_token& stop = {});

/// One error line for a connection that ended before both ends knew each other's identity.
[[nodiscard]] std::string refused(const HostPort& where, bool tls, const core::Error& why);

/// Connects to the first address that answers, completes the TLS handshake and checks the certificate's names. Errc::peer_lost: nothing
/// listens there, or the peer closed; Errc::timeout; Errc::config: this side or the peer refused TLS; Errc::interrupted as in
/// find_addresses().
[[nodiscard]] core::Result<TlsConnection> dial(const HostPort& where, SSL_CTX* tls, ConnectClock::time_point deadline,
                                               const std::stop_token& stop = {});

}  // namespace troupe::transport
