/// The address of a tcp endpoint, as text and in parts. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::transport {

struct HostPort {
  std::string host;  // a name or an IP address, without brackets
  std::uint16_t port = 0;
};

/// Parses "localhost:4242", "[::1]:0". Errc::config for any other form.
[[nodiscard]] core::Result<HostPort> parse_host_port(std::string_view text);
/// The form before a port: brackets around an IPv6 address.
[[nodiscard]] std::string bracketed(const std::string& host);

/// "tcp:HOST:PORT/INCARNATION/NAME". The incarnation is random, so a new endpoint on the port of a former one is not mistaken for it. The
/// letter before the incarnation: s for TLS, p for plain TCP.
struct TcpAddress {
  HostPort at;
  bool tls = false;
  std::string incarnation;  // letters and digits
  std::string name;         // of the member; may contain slashes
};
[[nodiscard]] std::string to_text(const TcpAddress& address);
/// Errc::usage when `text` is not such an address.
[[nodiscard]] core::Result<TcpAddress> parse_tcp_address(std::string_view text);
/// 64 random bits.
[[nodiscard]] std::string new_incarnation();

/// is_numeric(): `host` is an IP address. is_loopback(): that address is in 127.0.0.0/8 or is ::1.
[[nodiscard]] bool is_numeric(const std::string& host);
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace troupe::transport
