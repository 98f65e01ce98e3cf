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

#include "actors/control/network.hpp"
#include "actors/control/caf_connection.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxStrangers = 64;
constexpr auto kHandshakeDeadline = 5s;
constexpr auto kFarewell = 1s;     // until then who was refused may read why
constexpr auto kBreather = 200ms;  // while no descriptors are left
constexpr int kBacklog = 128;
const core::SteadyClock kClock;

}  // namespace

struct WireDoor::Port {
  Descriptor socket;
  std::uint16_t number = 0;
  Host host;
};

struct WireDoor::Stranger {
  Wire wire;
  std::shared_ptr<const Port> port;
  std::string from;
  WireClock::time_point deadline;
  WireState wants = WireState::wants_read;
  bool leaving = false;
};

WireDoor::WireDoor(Setup setup)
    : setup_(std::move(setup)),
      refusals_(std::make_shared<transport::RefusalReporter>(setup_.on_refused, kClock)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WireDoor::~WireDoor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void WireDoor::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

core::Result<std::uint16_t> WireDoor::open(const transport::HostPort& where,
                                           const std::vector<SocketAddress>& addresses, Host host) {
  auto port = std::make_shared<Port>();
  const auto failed = [&](int error) {
    const char* advice = error == EADDRINUSE      ? ": choose another port, or end who has it"
                         : error == EADDRNOTAVAIL ? ": give an address of this host"
                                                  : "";
    return core::fail(core::Errc::config,
                      fmt::format("{}: cannot listen there: {}{}", to_text(where), std::strerror(error), advice));
  };
  int error = wake_.get() < 0 ? EMFILE : EADDRNOTAVAIL;
  for (const SocketAddress& address : addresses) {
    if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) break;  // a name may stand for IPv6, too, where there is none
    // Debian gives a host's own name an address that no other host reaches.
    if (setup_.tls && address.loopback() && !is_loopback(where))
      return core::fail(core::Errc::config,
                        fmt::format("{}: {} is {} on this host, where no other host reaches it (look at /etc/hosts): "
                                    "give an address",
                                    to_text(where), where.host, numeric_host(address)));
    port->socket = Descriptor(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;  // a port whose last owner has just ended
    error = port->socket.get() < 0 || ::setsockopt(port->socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
                    ::bind(port->socket.get(), address.get(), address.size) != 0 ||
                    ::listen(port->socket.get(), kBacklog) != 0
                ? errno
                : 0;
    if (error == 0) break;
  }
  if (error != 0) return failed(error);
  SocketAddress bound;
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

void WireDoor::refuse(const std::string& from, const std::string& why) const { refusals_->report(from, why); }

void WireDoor::accept(const std::shared_ptr<const Port>& port) {
  SocketAddress from;
  from.size = sizeof from.storage;
  Descriptor socket(::accept4(port->socket.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.get() < 0) {
    exhausted_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return;
  }
  auto wire = Wire::create(std::move(socket), setup_.tls.get(), security::TlsSide::accepted);
  if (!wire) return refuse(to_text(from), wire.error().message);
  if (strangers_.size() >= kMaxStrangers) {
    refuse(strangers_.front()->from, "too many others came after it before it had said who it is");
    strangers_.erase(strangers_.begin());
  }
  strangers_.push_back(std::make_unique<Stranger>(
      Stranger{std::move(*wire), port, to_text(from), WireClock::now() + kHandshakeDeadline}));
  if (!advance(*strangers_.back())) strangers_.pop_back();
}

void WireDoor::admit(Stranger& stranger) {
  auto on_refused = [refusals = refusals_, from = stranger.from](const core::Error& why) {
    refusals->report(from, why.message);
  };
  // CAF takes a connection that it has not accepted itself together with what is published.
  caf::anon_send(setup_.broker, caf::publish_atom_v,
                 make_scribe(*setup_.multiplexer, std::move(stranger.wire), setup_.peers, std::move(on_refused)),
                 stranger.port->number, stranger.port->host.actor, stranger.port->host.interface);
}

/// False when it is done with.
bool WireDoor::advance(Stranger& stranger) {
  if (stranger.leaving) {
    std::array<char, 4096> ignored;
    const ssize_t got = ::recv(stranger.wire.descriptor(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    return got > 0 || (got < 0 && errno == EAGAIN);
  }
  stranger.wants = stranger.wire.shake_hands();
  if (stranger.wants == WireState::ready) {
    admit(stranger);
    return false;
  }
  if (stranger.wants != WireState::ended) return true;
  refuse(stranger.from, stranger.wire.error().message);
  // Closing with bytes unread would reset the connection, and the alert that says why would be lost.
  ::shutdown(stranger.wire.descriptor(), SHUT_WR);
  stranger.leaving = true;
  stranger.wants = WireState::wants_read;
  stranger.deadline = WireClock::now() + kFarewell;
  return true;
}

void WireDoor::run() {
  std::vector<pollfd> polled;
  for (;;) {
    std::vector<std::shared_ptr<const Port>> ports;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return strangers_.clear();
      ports = ports_;
    }
    auto next = WireClock::time_point::max();
    polled.assign(1, {wake_.get(), POLLIN, 0});
    for (const auto& stranger : strangers_) {
      polled.push_back({stranger->wire.descriptor(),
                        static_cast<short>(stranger->wants == WireState::wants_write ? POLLOUT : POLLIN), 0});
      next = std::min(next, stranger->deadline);
    }
    const std::size_t known = strangers_.size();
    for (const auto& port : ports)
      polled.push_back({port->socket.get(), static_cast<short>(exhausted_ ? 0 : POLLIN), 0});
    if (std::exchange(exhausted_, false)) next = std::min(next, WireClock::now() + kBreather);
    int wait = -1;
    if (next != WireClock::time_point::max())
      wait = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(next - WireClock::now()).count(), 0, 60'000));
    if (::poll(polled.data(), polled.size(), wait) < 0) continue;
    std::uint64_t woken = 0;
    if (polled[0].revents != 0) [[maybe_unused]]
      const auto got = ::read(wake_.get(), &woken, sizeof woken);
    const auto now = WireClock::now();
    for (std::size_t i = 0; i < known; ++i) {
      auto& stranger = strangers_[i];
      const bool stays = polled[1 + i].revents == 0 || advance(*stranger);
      if (stays && now < stranger->deadline) continue;
      if (stays && !stranger->leaving) refuse(stranger->from, "it did not finish the TLS handshake in time");
      stranger.reset();
    }
    std::erase(strangers_, nullptr);
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (polled[1 + known + i].revents != 0) accept(ports[i]);
  }
}

}  // namespace troupe::actors
