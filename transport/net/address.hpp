/// Where a tcp endpoint can be reached, as text and in parts. Thread rule: plain values.
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

/// "localhost:4242", "[::1]:0". Errc::config when it is not of that form.
[[nodiscard]] core::Result<HostPort> parse_host_port(std::string_view text);
/// As it stands before a port: with brackets around an IPv6 address.
[[nodiscard]] std::string bracketed(const std::string& host);

/// "tcp:HOST:PORT/INCARNATION/NAME". The incarnation is random: one that listens on the port of another that is gone is
/// not mistaken for it. Its first letter says whether TLS is spoken there.
struct TcpAddress {
  HostPort at;
  bool tls = false;
  std::string incarnation;  // letters and digits
  std::string name;         // of the member; may contain slashes
};
[[nodiscard]] std::string to_text(const TcpAddress& address);
/// Errc::usage when it is none.
[[nodiscard]] core::Result<TcpAddress> parse_tcp_address(std::string_view text);
/// 64 random bits.
[[nodiscard]] std::string new_incarnation();

/// Whether `host` is an IP address, and whether that is 127.0.0.0/8 or ::1.
[[nodiscard]] bool is_numeric(const std::string& host);
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace troupe::transport
