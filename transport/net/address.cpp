#include "transport/net/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <random>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr std::string_view kScheme = "tcp:";
constexpr std::size_t kLongest = 2048;

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

core::Result<HostPort> parse_host_port(std::string_view text) {
  const auto refused = [&] {
    return core::fail(core::Errc::config,
                      fmt::format("'{}' is not host:port; write 127.0.0.1:4242, node1:0 or [::1]:4242", text));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return refused();  // an IPv6 address without brackets is ambiguous
  HostPort parsed{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed.port);
  if (host.empty() || host.size() > 255 || !printable(host) || host.find_first_of(" /[]") != std::string_view::npos ||
      error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
    return refused();
  return parsed;
}

std::string to_text(const TcpAddress& address) {
  return fmt::format("{}{}:{}/{}{}/{}", kScheme, bracketed(address.at.host), address.at.port, address.tls ? 's' : 'p',
                     address.incarnation, address.name);
}

core::Result<TcpAddress> parse_tcp_address(std::string_view text) {
  const auto refused = [&] {
    return core::fail(core::Errc::usage, fmt::format("'{}' is no address of a tcp endpoint", text));
  };
  if (!text.starts_with(kScheme) || text.size() > kLongest || !printable(text)) return refused();
  const std::string_view rest = text.substr(kScheme.size());
  const auto first = rest.find('/');
  const auto second = first == std::string_view::npos ? first : rest.find('/', first + 1);
  if (second == std::string_view::npos) return refused();
  const auto at = parse_host_port(rest.substr(0, first));
  const std::string_view middle = rest.substr(first + 1, second - first - 1);
  if (!at || at->port == 0 || middle.size() < 2 || (middle[0] != 's' && middle[0] != 'p')) return refused();
  return TcpAddress{*at, middle[0] == 's', std::string(middle.substr(1)), std::string(rest.substr(second + 1))};
}

std::string new_incarnation() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

bool is_numeric(const std::string& host) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET, host.c_str(), &parsed) == 1 || ::inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace troupe::transport
