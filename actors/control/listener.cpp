#include "actors/control/listener.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <caf/io/scribe.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>

#include "actors/control/caf_connection.hpp"
#include "actors/control/network.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxPending = 64;
constexpr auto kHandshakeDeadline = 5s;
constexpr auto kRefusalLinger = 1s;  // time for a refused peer to read the reason
constexpr auto kRetryDelay = 200ms;  // pause when no descriptors are free
constexpr int kBacklog = 128;
const core::SteadyClock kClock;

}  // namespace

struct Listener::Port {
  core::FileDescriptor socket;
  std::uint16_t number = 0;
  Host host;
};

struct Listener::PendingConnection {
  transport::TlsConnection connection;
  std::shared_ptr<const Port> port;
  std::string from;
  transport::ConnectClock::time_point deadline;
  transport::ConnectionState wants = transport::ConnectionState::wants_read;
  bool leaving = false;
};

Listener::Listener(Setup setup)
    : setup_(std::move(setup)),
      refusals_(std::make_shared<transport::RefusalReporter>(setup_.on_refused, kClock)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Listener::~Listener() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void Listener::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

core::Result<std::uint16_t> Listener::open(const transport::HostPort& where,
                                           const std::vector<transport::SocketAddress>& addresses, Host host) {
  auto port = std::make_shared<Port>();
  const auto failed = [&](int error) {
    const char* advice = error == EADDRINUSE      ? ": choose another port, or stop the process that uses it"
                         : error == EADDRNOTAVAIL ? ": give an address of this host"
                                                  : "";
    return core::fail(core::Errc::config,
                      fmt::format("{}: cannot listen there: {}{}", to_text(where), std::strerror(error), advice));
  };
  int error = wake_.get() < 0 ? EMFILE : EADDRNOTAVAIL;
  for (const transport::SocketAddress& address : addresses) {
    if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) break;  // a name may include IPv6 on a host without it
    // Debian maps a host's own name to a loopback address (127.0.1.1), which no other host reaches.
    if (setup_.tls && address.loopback() && !is_loopback(where))
      return core::fail(core::Errc::config,
                        fmt::format("{}: {} is {} on this host, where no other host reaches it (look at /etc/hosts): "
                                    "give an address",
                                    to_text(where), where.host, transport::numeric_host(address)));
    port->socket =
        core::FileDescriptor(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;  // allows a port whose last owner has just ended
    error = port->socket.get() < 0 || ::setsockopt(port->socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
                    ::bind(port->socket.get(), address.get(), address.size) != 0 ||
                    ::listen(port->socket.get(), kBacklog) != 0
                ? errno
                : 0;
    if (error == 0) break;
  }
  if (error != 0) return failed(error);
  transport::SocketAddress bound;
  bound.size = sizeof bound.storage;
  if (::getsockname(port->socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0)
    return failed(errno);
  port->number =
      ntohs(bound.storage.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port
                                               : reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port);
  port->host = std::move(host);
  const std::uint16_t number = port->number;
  {
    const std::lock_guard lock(mutex_);
    ports_.push_back(std::move(port));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  wake();
  return number;
}

void Listener::refuse(const std::string& from, const std::string& why) const { refusals_->report(from, why); }

void Listener::accept(const std::shared_ptr<const Port>& port) {
  transport::SocketAddress from;
  from.size = sizeof from.storage;
  core::FileDescriptor socket(::accept4(port->socket.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.get() < 0) {
    exhausted_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return;
  }
  auto connection = transport::TlsConnection::create(std::move(socket), setup_.tls.get(), security::TlsSide::accepted);
  if (!connection) return refuse(to_text(from), connection.error().message);
  if (pending_connections_.size() >= kMaxPending) {
    refuse(pending_connections_.front()->from,
           fmt::format("closed: {} newer connections are pending and it has not authenticated", kMaxPending));
    pending_connections_.erase(pending_connections_.begin());
  }
  pending_connections_.push_back(std::make_unique<PendingConnection>(PendingConnection{
      std::move(*connection), port, to_text(from), transport::ConnectClock::now() + kHandshakeDeadline}));
  if (!advance(*pending_connections_.back())) pending_connections_.pop_back();
}

void Listener::admit(PendingConnection& pending_connection) {
  auto on_refused = [refusals = refusals_, from = pending_connection.from](const core::Error& why) {
    refusals->report(from, why.message);
  };
  // CAF takes over a foreign connection only together with the actor that is published at its port.
  caf::anon_send(setup_.broker, caf::publish_atom_v,
                 make_caf_connection(*setup_.multiplexer, std::move(pending_connection.connection), setup_.peers,
                                     std::move(on_refused)),
                 pending_connection.port->number, pending_connection.port->host.actor,
                 pending_connection.port->host.interface);
}

/// False when the connection can be dropped from the list.
bool Listener::advance(PendingConnection& pending_connection) {
  if (pending_connection.leaving) {
    std::array<char, 4096> ignored;
    const ssize_t got =
        ::recv(pending_connection.connection.descriptor(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    return got > 0 || (got < 0 && errno == EAGAIN);
  }
  pending_connection.wants = pending_connection.connection.shake_hands();
  if (pending_connection.wants == transport::ConnectionState::ready) {
    admit(pending_connection);
    return false;
  }
  if (pending_connection.wants != transport::ConnectionState::ended) return true;
  refuse(pending_connection.from, pending_connection.connection.error().message);
  // Closing with unread bytes would reset the connection, and the TLS alert with the reason would be lost.
  ::shutdown(pending_connection.connection.descriptor(), SHUT_WR);
  pending_connection.leaving = true;
  pending_connection.wants = transport::ConnectionState::wants_read;
  pending_connection.deadline = transport::ConnectClock::now() + kRefusalLinger;
  return true;
}

void Listener::run() {
  std::vector<pollfd> polled;
  for (;;) {
    std::vector<std::shared_ptr<const Port>> ports;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return pending_connections_.clear();
      ports = ports_;
    }
    auto next = transport::ConnectClock::time_point::max();
    polled.assign(1, {wake_.get(), POLLIN, 0});
    for (const auto& pending_connection : pending_connections_) {
      polled.push_back(
          {pending_connection->connection.descriptor(),
           static_cast<short>(pending_connection->wants == transport::ConnectionState::wants_write ? POLLOUT : POLLIN),
           0});
      next = std::min(next, pending_connection->deadline);
    }
    const std::size_t known = pending_connections_.size();
    for (const auto& port : ports)
      polled.push_back({port->socket.get(), static_cast<short>(exhausted_ ? 0 : POLLIN), 0});
    if (std::exchange(exhausted_, false)) next = std::min(next, transport::ConnectClock::now() + kRetryDelay);
    int wait = -1;
    if (next != transport::ConnectClock::time_point::max())
      wait = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(next - transport::ConnectClock::now()).count(), 0, 60'000));
    if (::poll(polled.data(), polled.size(), wait) < 0) continue;
    std::uint64_t woken = 0;
    if (polled[0].revents != 0) [[maybe_unused]]
      const auto got = ::read(wake_.get(), &woken, sizeof woken);
    const auto now = transport::ConnectClock::now();
    for (std::size_t i = 0; i < known; ++i) {
      auto& pending_connection = pending_connections_[i];
      const bool stays = polled[1 + i].revents == 0 || advance(*pending_connection);
      if (stays && now < pending_connection->deadline) continue;
      if (stays && !pending_connection->leaving)
        refuse(pending_connection->from, "it did not finish the TLS handshake in time");
      pending_connection.reset();
    }
    std::erase(pending_connections_, nullptr);
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (polled[1 + known + i].revents != 0) accept(ports[i]);
  }
}

}  // namespace troupe::actors
