// The part of TcpEndpointImpl that runs in its I/O thread, and the start of listening.
#include <fcntl.h>
#include <pthread.h>

#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "transport/security/tls_context.hpp"
#include "transport/tcp/endpoint_impl.hpp"

namespace troupe::transport {

using namespace std::chrono_literals;

namespace {

constexpr core::Duration kNoDescriptors = 100ms;  // pause before the next accept, which would spin otherwise
constexpr int kBacklog = 256;

core::Error cannot_listen(const HostPort& at, const SystemError& error) {
  const bool busy = error == boost::system::errc::address_in_use;
  return {core::Errc::config, fmt::format("tcp cannot listen on {}:{}: {}{}", at.host, at.port, error.message(),
                                          busy ? "; choose another port, or 0 for any that is free" : "")};
}

}  // namespace

TcpEndpointImpl::TcpEndpointImpl(const EndpointOptions& options, std::shared_ptr<SSL_CTX> tls, TcpAddress self)
    : options_(options), tls_(std::move(tls)), self_(std::move(self)) {}

core::Result<std::unique_ptr<TcpEndpointImpl>> TcpEndpointImpl::create(const EndpointOptions& options) {
  const TcpOptions& tcp_options = options.tcp;
  const auto at = parse_host_port(tcp_options.listen);
  if (!at) return core::fail(core::Errc::config, "tcp cannot listen: " + at.error().message);
  if (const auto complete = security::check_complete(tcp_options.tls); !complete)
    return tl::unexpected(complete.error());
  std::shared_ptr<SSL_CTX> tls;
  if (!tcp_options.tls.empty()) {
    auto made = security::make_tls_context(tcp_options.tls, std::time(nullptr));
    if (!made) return tl::unexpected(made.error());
    tls = std::move(*made);
  }
  TcpAddress self;
  self.at.host = tcp_options.advertise.empty() ? at->host : tcp_options.advertise;
  self.tls = tls != nullptr;
  self.incarnation = new_incarnation();
  self.name = options.name;
  std::unique_ptr<TcpEndpointImpl> member(new TcpEndpointImpl(options, std::move(tls), std::move(self)));
  if (const auto listening = member->listen(*at); !listening) return tl::unexpected(listening.error());
  member->start();
  return member;
}

core::Result<void> TcpEndpointImpl::listen(const HostPort& at) {
  SystemError error;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(at.host, std::to_string(at.port), tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return core::fail(core::Errc::config,
                      fmt::format("tcp cannot listen on host {}: {}; give a name or an address of this host", at.host,
                                  error.message()));
  const tcp::endpoint endpoint = found.begin()->endpoint();
  if (!tls_ && !endpoint.address().is_loopback())
    return core::fail(core::Errc::config, fmt::format("tcp will not listen on {} without TLS: give an authority, a "
                                                      "certificate and a key (`troupe certs`), or listen on 127.0.0.1",
                                                      at.host));
  if (endpoint.address().is_unspecified() && options_.tcp.advertise.empty())
    return core::fail(core::Errc::config, fmt::format("tcp listens on every address of this host ({}): say under which "
                                                      "one others reach it (advertise)",
                                                      at.host));
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kBacklog, error);
  if (error) return tl::unexpected(cannot_listen(at, error));
  (void)::fcntl(acceptor_.native_handle(), F_SETFD,
                FD_CLOEXEC);  // child programs must not keep the port
  self_.at.port = acceptor_.local_endpoint(error).port();
  address_ = {to_text(self_)};
  if (!parse_tcp_address(address_.text))
    return core::fail(core::Errc::config, fmt::format("'{}' would be this endpoint's address: give a printable, short "
                                                      "name and host",
                                                      address_.text));
  return {};
}

TcpEndpointImpl::~TcpEndpointImpl() {
  if (thread_.joinable()) close();
}

void TcpEndpointImpl::start() {
  TcpHandshake::Setup setup;
  setup.self = self_;
  setup.window = window_of(options_.credit);
  setup.tls = tls_;
  setup.options = options_.tcp;
  setup.received = [this](Peer peer) {
    const std::lock_guard lock(mutex_);
    return remotes_[static_cast<std::size_t>(peer)]->session->received();
  };
  setup.connected = [this](Peer peer, TcpStream stream, const Hello& of_peer) {
    connected(at(peer), std::move(stream), of_peer);
  };
  setup.superseded = [this](Peer peer) { broke(at(peer), "the peer made another connection"); };
  setup.failed = [this](Peer peer, const core::Error& why) { lost(at(peer), why); };
  handshake_ = std::make_unique<TcpHandshake>(io_, std::move(setup));
  accept();
  beat();
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "troupe-tcp");
    io_.run();
  });
}

void TcpEndpointImpl::accept() {
  acceptor_.async_accept([this](const SystemError& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) handshake_->accept(std::move(socket));
    if (!error || error == asio::error::connection_aborted) return accept();
    accept_again_.expires_after(kNoDescriptors);
    accept_again_.async_wait([this](const SystemError& stopped) {
      if (!stopped && acceptor_.is_open()) accept();
    });
  });
}

void TcpEndpointImpl::beat() {
  heartbeat_.expires_after(options_.tcp.heartbeat);
  heartbeat_.async_wait([this](const SystemError& stopped) {
    if (stopped) return;
    std::vector<RemotePtr> remotes;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      remotes = remotes_;
    }
    for (const RemotePtr& remote : remotes) beat_one(remote);
    beat();
  });
}

void TcpEndpointImpl::beat_one(const RemotePtr& remote) {
  // Counts beats, not time: a process that was stopped for long has missed only one beat.
  const auto enough = static_cast<unsigned>(options_.tcp.lost_after / options_.tcp.heartbeat);
  const core::Error silence{core::Errc::peer_lost,
                            fmt::format("nothing was heard of it for {} s", core::seconds(options_.tcp.lost_after))};
  const auto connection = remote->connection;
  if (!connection) {
    if (!remote->broken.empty() && ++remote->silent >= enough) lost(remote, silence);
    return;
  }
  remote->silent = connection->has_heard() ? 0 : remote->silent + 1;
  if (connection->tick() >= enough) return connection->give_up(silence);
  {
    const std::lock_guard lock(mutex_);
    remote->session->beat();
  }
  connection->kick();
}

TcpEndpointImpl::RemotePtr TcpEndpointImpl::at(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return remotes_[static_cast<std::size_t>(peer)];
}

void TcpEndpointImpl::connected(const RemotePtr& remote, TcpStream stream, const Hello& of_peer) {
  core::Result<void> checked;
  {
    const std::lock_guard lock(mutex_);
    if (remote->session->lost()) return;  // given up meanwhile: its end is posted, and the stream closes here
    checked = remote->session->connected(of_peer);
  }
  if (!checked) return lost(remote, checked.error());
  remote->broken.clear();
  const auto connection = std::make_shared<TcpConnection>(
      io_, mutex_, remote->session, std::move(stream), !encrypted(),
      [this, remote](TcpConnection::Why how, const core::Error& why) { ended(remote, how, why); });
  remote->connection = connection;
  connection->start();
}

/// Between two connections nothing moves; the next connection transfers what the broken one did not.
void TcpEndpointImpl::broke(const RemotePtr& remote, const std::string& why) {
  const auto connection = std::exchange(remote->connection, nullptr);
  if (!connection) return;  // given up already
  if (connection->has_heard()) remote->silent = connection->silent();
  connection->abandon();
  remote->broken = why;
  const std::lock_guard lock(mutex_);
  remote->session->broke();
}

void TcpEndpointImpl::ended(const RemotePtr& remote, TcpConnection::Why how, const core::Error& why) {
  if (how == TcpConnection::Why::over) return lost(remote, why);
  broke(remote, why.message);
  handshake_->reconnect(remote->session->peer(), remote->session->remote());
}

void TcpEndpointImpl::lost(const RemotePtr& remote, const core::Error& why) {
  remote->connection.reset();
  const std::string broken = std::exchange(remote->broken, {});
  handshake_->forget(remote->session->peer(), remote->session->remote(), "it gave this connection up: " + why.message);
  const std::lock_guard lock(mutex_);
  // Damage counts as a lost peer for outstanding operations. An error in the configuration keeps its code.
  if (broken.empty())
    remote->session->lose(why.code == core::Errc::config ? why.code : core::Errc::peer_lost, why.message);
  else
    remote->session->lose(core::Errc::peer_lost,
                          fmt::format("the connection broke ({}) and was not mended: {}", broken, why.message));
  remote->session->end(Outcome::failed);
}

void TcpEndpointImpl::shut() {
  SystemError ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  heartbeat_.cancel();
  handshake_->close();
  std::vector<RemotePtr> remotes;
  {
    const std::lock_guard lock(mutex_);
    remotes = remotes_;
  }
  for (const RemotePtr& remote : remotes)
    if (const auto connection = std::exchange(remote->connection, nullptr)) connection->stop("it closed its endpoint");
}

}  // namespace troupe::transport
