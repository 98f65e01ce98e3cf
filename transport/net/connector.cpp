#include "transport/net/connector.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// A blocking wait here cannot be interrupted: a stop request is checked between waits of this length.
constexpr std::chrono::milliseconds kHeardWithin{50};

struct Found {
  int error = 0;
  std::vector<SocketAddress> addresses;
};

Found look_up(const HostPort& where) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Found found;
  found.error = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &wanted, &list);
  if (found.error != 0) return found;
  const std::unique_ptr<addrinfo, security::Freed<freeaddrinfo>> owner(list);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    found.addresses.push_back(address);
  }
  if (found.addresses.empty()) found.error = EAI_NONAME;
  return found;
}

/// False after the deadline or a stop request.
bool await(int fd, short events, ConnectClock::time_point deadline, const std::stop_token& stop) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - ConnectClock::now());
    if (left.count() <= 0 || stop.stop_requested()) return false;
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min(left, kHeardWithin).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call reports the error
  }
}

/// The attempt's errno; ETIMEDOUT after the deadline.
int connect_to(const SocketAddress& address, int fd, ConnectClock::time_point deadline, const std::stop_token& stop) {
  if (::connect(fd, address.get(), address.size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!await(fd, POLLOUT, deadline, stop)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

core::Result<core::FileDescriptor> reach(const HostPort& where, const std::vector<SocketAddress>& addresses,
                                         ConnectClock::time_point deadline, const std::stop_token& stop) {
  int error = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // A silent address must not take the time of the next addresses.
    const auto now = ConnectClock::now();
    const auto share = now + (deadline - now) / static_cast<int>(addresses.size() - i);
    core::FileDescriptor socket(
        ::socket(addresses[i].storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) {
      error = errno;
      continue;
    }
    const int failed = connect_to(addresses[i], socket.get(), share, stop);
    if (failed == 0) {
      const int on = 1;
      (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return socket;
    }
    if (stop.stop_requested()) return tl::unexpected(core::interrupted_early());
    error = failed;
  }
  if (error == ETIMEDOUT)
    return core::fail(
        core::Errc::timeout,
        fmt::format("{}: nothing answers there: is the host up, and the way to it open?", to_text(where)));
  if (error == ECONNREFUSED)
    return core::fail(core::Errc::peer_lost,
                      fmt::format("{}: no process listens there: has it been started?", to_text(where)));
  return core::fail(core::Errc::peer_lost, fmt::format("{}: cannot connect: {}", to_text(where), std::strerror(error)));
}

}  // namespace

bool SocketAddress::loopback() const noexcept {
  if (storage.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24) == 127;
  if (storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  return false;
}

std::string to_text(const HostPort& where) {
  return where.host.find(':') == std::string::npos ? fmt::format("{}:{}", where.host, where.port)
                                                   : fmt::format("[{}]:{}", where.host, where.port);
}

std::string to_text(const SocketAddress& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return std::strchr(host, ':') == nullptr ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::string numeric_host(const SocketAddress& address) {
  char host[NI_MAXHOST];
  if (::getnameinfo(address.get(), address.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "unknown";
  return host;
}

core::Result<std::vector<SocketAddress>> find_addresses(const HostPort& where, bool tls,
                                                        ConnectClock::time_point deadline,
                                                        const std::stop_token& stop) {
  // A silent name server blocks a thread for long: the lookup has its own thread, detached from the caller.
  std::packaged_task<Found()> task([where] { return look_up(where); });
  auto result = task.get_future();
  if (is_numeric(where.host))
    task();
  else
    std::thread(std::move(task)).detach();
  while (result.wait_until(std::min(deadline, ConnectClock::now() + kHeardWithin)) != std::future_status::ready &&
         ConnectClock::now() < deadline && !stop.stop_requested()) {
  }
  if (stop.stop_requested()) return tl::unexpected(core::interrupted_early());
  if (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return core::fail(
        core::Errc::timeout,
        fmt::format("{}: the host's address was not found in time: look at the name server", to_text(where)));
  Found found = result.get();
  if (found.error != 0)
    return core::fail(core::Errc::config, fmt::format("{}: host {} cannot be found: {}", to_text(where), where.host,
                                                      ::gai_strerror(found.error)));
  if (!tls && !std::ranges::all_of(found.addresses, &SocketAddress::loopback))
    return core::fail(
        core::Errc::config,
        fmt::format("{}: off loopback the control plane needs TLS: give an authority, a certificate and a "
                    "key (`troupe certs` makes them)",
                    to_text(where)));
  return std::move(found.addresses);
}

std::string refused(const HostPort& where, bool tls, const core::Error& why) {
  const char* advice = !tls ? "does that end want TLS, or is it no process of ours?"
                       : why.code == core::Errc::peer_lost
                           ? "is it a troupe process? Its log names the connections that it refused, and why"
                           : "do both ends speak TLS, with certificates of one authority?";
  return fmt::format("{}: no connection came about: {}: {}", to_text(where), why.message, advice);
}

core::Result<TlsConnection> dial(const HostPort& where, SSL_CTX* tls, ConnectClock::time_point deadline,
                                 const std::stop_token& stop) {
  const auto addresses = find_addresses(where, tls != nullptr, deadline, stop);
  if (!addresses) return tl::unexpected(addresses.error());
  auto socket = reach(where, *addresses, deadline, stop);
  if (!socket) return tl::unexpected(socket.error());
  auto wire = TlsConnection::create(std::move(*socket), tls, security::TlsSide::dialled);
  if (!wire) return wire;
  for (;;) {
    const ConnectionState state = wire->shake_hands();
    if (state == ConnectionState::ready) break;
    if (state == ConnectionState::ended)
      return core::fail(wire->error().code, refused(where, tls != nullptr, wire->error()));
    if (!await(wire->descriptor(), state == ConnectionState::wants_read ? POLLIN : POLLOUT, deadline, stop)) {
      if (stop.stop_requested()) return tl::unexpected(core::interrupted_early());
      return core::fail(
          core::Errc::timeout,
          fmt::format("{}: it does not answer in TLS: is it overloaded, or no process of ours?", to_text(where)));
    }
  }
  if (!wire->names(where.host))
    return core::fail(
        core::Errc::config,
        fmt::format("{}: its certificate does not name {}: make one with `troupe certs node NAME --host {}`",
                    to_text(where), where.host, where.host));
  return wire;
}

}  // namespace troupe::transport
